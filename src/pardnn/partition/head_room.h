// HeadRoom: tells a search, without a simulation, whether devices have room for what it moves.
#pragma once

#include <span>

#include "pardnn/partition/best.h"
#include "pardnn/partition/books.h"

namespace pardnn {

// Books of one simulated proposal, from which the search goes on: times and orders count as they
// were there. A forecast; the simulator has the last word.
class HeadRoom {
 public:
  // The proposal must be what `trial` scored last.
  HeadRoom(const Problem& problem, const Times& times, const UnitPlacement& placement,
           Trial& trial);

  // Whether the units have room where the placement has them: no device is above its limit by more
  // than it was. If so, that is where they are from now on.
  bool takes(std::span<const UnitId> units, const UnitPlacement& placement);
  // All units are where they were at first.
  void restart() { books_.undo({}); }

 private:
  const Problem& problem_;
  Books books_;
  Table<DeviceId, std::int64_t> over_bytes_;  // before a change
};

}  // namespace pardnn
