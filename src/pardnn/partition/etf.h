// Row `etf`: earliest task first, list scheduling that counts transfers (Hwang, Chow, Anger, Lee,
// "Scheduling precedence graphs in systems with interprocessor communication times", 1989).
#pragma once

#include <cstdint>
#include <optional>

#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

Proposal etf(const Problem& problem, const Run& run);

// Whose favourite child an op is: it is to follow that op on the same device.
struct Parent {
  OpId op;
  std::int64_t crossing_ns;  // that this saves
};
using FavouriteOf = Table<OpId, std::optional<Parent>>;

using PlacedUnits = Table<UnitId, std::optional<DeviceId>>;

struct EtfOptions {
  // Bytes of variables and outputs together that a device may be given, per mille of its share of
  // all of them by memory above the reserve; a unit that fits nowhere goes where most is left.
  std::optional<std::int64_t> bytes_per_mille = {};
  // A value from another device counts as arriving this many of its transfer times later: slow
  // links are then used for what is worth it.
  std::int64_t delay = 0;
  // A device keeps itself for the favourite child of the op that it ran last, though others could
  // start sooner, when the child starts there no later than what its parent made could be
  // elsewhere. May be null.
  const FavouriteOf* favourite_of = nullptr;
  // Units that lie somewhere already. May be null.
  const PlacedUnits* placed = nullptr;
};

// Of all ready ops and devices the pair that can start first, ties by greatest `priority`, then
// least op, then least device. An op that is slower on a device than on its fastest counts as if
// it started that much later there. The first op of a unit decides for all of it.
Proposal earliest_task_first(const Problem& problem, const Times& times,
                             const Table<OpId, std::int64_t>& priority, const EtfOptions& options);

}  // namespace pardnn
