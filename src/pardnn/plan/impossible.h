// Why no plan fits, where that is proven.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pardnn/problem/problem.h"

namespace pardnn {

// One proof.
struct Impossible {
  enum class Why : std::uint8_t {
    kUnit,       // a unit has more variables, and most working memory, than any device's limit
    kVariables,  // variables that may be on these devices only are more than their limits together
    kPieces,     // variables are too large to be dealt out to so few devices
    kMoment,     // all devices together hold more at one moment than all limits
  };
  Why why;
  std::int64_t bytes = 0;       // needed
  std::int64_t room_bytes = 0;  // there is; kPieces: devices, of so many needed in `bytes`
  std::optional<UnitId> unit;   // kUnit: the one that misses most
  std::optional<OpId> at;       // kMoment: when this op starts
  DeviceSet devices;            // kVariables; kUnit: the one with most room that it may be on
};

// At most one reason of each sort, in the order above; kMoment only where the variables alone do
// not say it. Empty: nothing is proven.
std::vector<Impossible> proven_impossible(const Problem& problem);

// "group g alone needs 3 GiB, and d0, the largest device it may be on, has room for 2 GiB"
std::string sentence(const Problem& problem, const Impossible& reason);
// "group g", "op a", "variable v"
std::string unit_name(const Problem& problem, UnitId unit);

}  // namespace pardnn
