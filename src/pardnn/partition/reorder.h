// Reorder: makes room on devices at a moment by order alone, without moving any op elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {

// A device that holds too much at one moment.
struct Shortage {
  DeviceId device;
  std::int64_t moment_ns, bytes;
};

// Two changes of a line of ops keep every edge: an op goes to just before its first reader, or,
// when all it waits for is there, to just before the op that runs at the moment. The first is
// for ops whose results lie about at the moment and are larger than what they free, the second
// for later ops that free more than they make. Those that only wait come first, then those that
// gain most, until there is room. An op in `tried` is left alone; those that are taken join it.
// Nothing when no change gains anything. O((ops + edges) * shortages).
std::optional<std::vector<OpId>> make_room_by_order(const Problem& problem, const Times& times,
                                                    const UnitPlacement& placement,
                                                    const Timeline& timeline,
                                                    const std::vector<Shortage>& shortages,
                                                    Table<OpId, char>& tried);

}  // namespace pardnn
