// Replay: when everything of a plan happens, found by stepping from instant to instant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pardnn/plan/plan.h"

namespace pardnn::checking {

struct Replay {
  Table<OpId, std::int64_t> start_ns, finish_ns;
  std::vector<Transfer> transfers;  // in the order granted
  Sequences sequences;              // as executed
  std::int64_t step_ns = 0;
  std::int64_t bytes_sent = 0;
};

// Either the replay, or why it came to a stop: a transfer without a link, or the ops that wait for
// each other.
struct ReplayResult {
  std::optional<Replay> replay;
  std::string problem;
};

// `plan` must have every op of the graph placed and, under sequence dispatch, in one sequence.
ReplayResult replay(const Problem& problem, const Plan& plan);

}  // namespace pardnn::checking
