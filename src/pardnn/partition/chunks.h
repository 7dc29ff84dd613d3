// Row `chunks`: the ops in the order in which they run, cut into one contiguous piece per device.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/partition/rows.h"

namespace pardnn {

// The order is the program's where the graph has one, else by earliest possible start. Each piece
// takes its device's share of time and bytes, half and half; a unit goes as a whole to the piece
// of its first op, or to the nearest allowed device.
Proposal chunks(const Problem& problem, const Run& run);

// What a split counts.
struct SplitWeights {
  std::uint32_t time = 1, bytes = 1;  // shares of mean op time, of outputs and variables
};

// Cuts `units` (every one that has ops, once) into one piece per device, ids ascending. A piece's
// share is its device's part of the speed and of the memory above the reserve. Variables that no
// op touches follow to where the fewest bytes lie in proportion.
UnitPlacement cut_into_pieces(const Problem& problem, const std::vector<UnitId>& units,
                              SplitWeights weights);

}  // namespace pardnn
