// Row `chunks`: the ops in the order in which they run, cut into one contiguous piece per device.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/partition/rows.h"

namespace pardnn {

// The order is the program's where the graph has one, else by earliest possible start. Each piece
// takes its device's share of time and bytes, half and half; a unit goes as a whole to the piece
// of its first op, or to the nearest allowed device.
Proposal chunks(const Problem& problem, const Run& run);

// What a split counts, per unit.
struct SplitWeights {
  Table<UnitId, std::int64_t> time_ns, bytes;
};

// Mean op times; variables and all outputs as if none were freed.
SplitWeights weigh_units(const Problem& problem);

// In parts of a million; only their proportions count.
using Shares = Table<DeviceId, std::int64_t>;

// Each device's part of the speed and of the memory above the reserve, mixed time : bytes.
Shares device_shares(const Problem& problem, std::int64_t time, std::int64_t bytes);

// Cuts `units` (every one that has ops, once) into one piece per device, ids ascending, so that a
// piece's part of all time and all bytes, mixed time : bytes, is the device's share. Variables that
// no op touches go where most room is left.
UnitPlacement cut_into_pieces(const Problem& problem, const std::vector<UnitId>& units,
                              const SplitWeights& weights, std::int64_t time, std::int64_t bytes,
                              const Shares& shares);

}  // namespace pardnn
