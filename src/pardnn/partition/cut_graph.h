// CutGraph: what a graph cut sees of a step. Lumps of units, the wires between them, and what each
// lump weighs on its device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/problem/problem.h"
#include "pardnn/partition/times.h"

namespace pardnn {

enum class LumpId : std::uint32_t {};  // of the finest graph: the unit of the same number
enum class WireId : std::uint32_t {};  // a tensor, or the signal of an op's control edges

// A wire joins the lump that makes a value and those that read it. With lumps on n devices it costs
// n - 1 crossings: one transfer to each other device, however many read it there (rule T1).
struct CutGraph {
  std::size_t weight_count = 0;       // of each lump
  std::vector<std::int64_t> weights;  // lumps x weights
  Table<LumpId, DeviceSet> allowed;
  Table<WireId, std::int64_t> crossing_ns;
  Lists<WireId, LumpId> members;  // two or more, ascending, each once
  Lists<LumpId, WireId> wires;    // ascending

  IdRange<LumpId> lumps() const { return allowed.ids(); }
  std::span<const std::int64_t> weights_of(LumpId lump) const {
    return {weights.data() + index(lump) * weight_count, weight_count};
  }
};

// Every unit a lump, without weights. Crossings are mean times over all links.
CutGraph graph_of_units(const Problem& problem, const Times& times);

// The graph of the clusters: `cluster` has one for every lump, numbered from 0 up to `count`. Wires
// inside one cluster go, those that join the same clusters become one.
CutGraph contract(const CutGraph& graph, const Table<LumpId, LumpId>& cluster, std::size_t count);

}  // namespace pardnn
