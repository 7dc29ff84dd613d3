// Together or apart: when an op can start, whichever of the ops before it share its device.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "pardnn/plan/one_device.h"

namespace pardnn {

inline constexpr std::int64_t kCertain = std::numeric_limits<std::int64_t>::max();

// An op before v. Were it not on the device, v could not start before `key_ns`; kCertain: it is
// there for certain.
struct Neighbour {
  std::int64_t key_ns = 0;
  Job job;
};

// Let u1, u2, … be the neighbours by falling key, and S(j) a bound on when one device can have done
// u1 … uj. Let u(j+1) be the first that is not on the device: v starts at the earliest at
// max(key of u(j+1), S(j)); if there is none, at S(all). The least of these over all j holds for
// every plan. Neighbours left out only make it smaller. Puts them in the order of their keys.
std::int64_t together_or_apart_ns(std::vector<Neighbour>& neighbours);

}  // namespace pardnn
