// Live list: list scheduling that chooses devices by when an op could finish there and by what
// the device holds at that moment.
#pragma once

#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

struct LiveListOptions {
  // Of each device's memory above the reserve, per mille: above it a device is given nothing as
  // long as another one is below; what is left is for what comes later.
  Table<DeviceId, std::int64_t> fill_per_mille;
  // What would have to be sent counts as arriving this many of its transfer times later.
  std::int64_t delay = 0;
  // An op that leaves no more bytes than it found comes before all others.
  bool frees_first = false;
};

// When the last input of an op has been made it is given to a device: of those that hold no more
// than they may with it (see LiveBytes), where it would finish first, behind the ops of greater
// priority that wait there; if there is none, where most room is left. A device that is free takes
// the ready op of greatest priority or, when that would pass its limit, the one that frees most.
// The first op of a unit decides for all of it. O((ops + edges) * devices * log ops).
Proposal list_by_live_bytes(const Problem& problem, const Times& times,
                            const Table<OpId, std::int64_t>& priority,
                            const LiveListOptions& options);

}  // namespace pardnn
