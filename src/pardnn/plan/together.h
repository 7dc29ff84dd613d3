// Together or apart: when an op can start, whichever of the ops before it share its device.
#pragma once

#include <cstddef>
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

// Works out when one op after another can start; keeps its arrays.
class Together {
 public:
  // Let u1, u2, … be the neighbours by falling key, and S(j) a bound on when one device can have
  // done u1 … uj. Let u(j+1) be the first that is not on the device: v starts at the earliest at
  // max(key of u(j+1), S(j)); if there is none, at S(all). The least of these over all j holds for
  // every plan. Neighbours left out only make it smaller. Puts them in the order of their heads.
  std::int64_t or_apart_ns(std::vector<Neighbour>& neighbours);

 private:
  std::int64_t done_ns(const std::vector<Neighbour>& by_head, std::size_t count);

  std::vector<std::uint32_t> by_key_, rank_;  // the neighbour at each place, and back
  std::vector<Job> jobs_;
  OneDevice device_;
};

}  // namespace pardnn
