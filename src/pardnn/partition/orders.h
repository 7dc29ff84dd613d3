// Orders: ways to line up all ordinary ops of a step; each respects the edges.
//
// On a fixed placement the order decides both how long the step is and what is alive when. A
// simple event loop follows the devices: whenever one is free it takes one of the ops that are
// ready, by priority or by what the op does to the device's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// The program's order: ascending `at`. The graph must have one.
std::vector<OpId> given_order(const Graph& graph);

// Ids are topological; so is this.
std::vector<OpId> id_order(const Graph& graph);

// Ascending by moment, ties by id. Moments must grow along every edge.
std::vector<OpId> order_by(const Graph& graph, const Table<OpId, std::int64_t>& moment);

// Which of the ready ops a free device takes.
enum class Take : std::uint8_t {
  kPriority,     // the greatest priority
  kFreeing,      // one that leaves no more bytes behind than it found, else the greatest priority
  kWithinLimit,  // kFreeing, but what would pass the device's limit waits for what frees most
  kLeastBytes,   // the one that leaves the fewest bytes behind
};

// The order in which ops start when every device takes ready ops by `take`; ties by greatest
// priority, then least id. Transfers are counted as the rules say.
std::vector<OpId> list_order(const Problem& problem, const Times& times,
                             const UnitPlacement& placement,
                             const Table<OpId, std::int64_t>& priority, Take take);

}  // namespace pardnn
