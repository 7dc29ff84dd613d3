// What would be enough, when a plan does not fit: more memory, or more devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pardnn/plan/impossible.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/run.h"

namespace pardnn {

// Devices of the machine and further ones like its last (see more_devices.h), all together.
struct MoreDevices {
  bool never = false;                // proven: one unit is larger than any device it may be on
  std::size_t least = 0;             // proven: with fewer no plan fits
  std::size_t tried = 0;             // the most devices that were tried; 0: none were
  std::optional<std::size_t> found;  // the fewest with which a plan was found
};

struct Enough {
  std::vector<Impossible> impossible;  // proven: no plan fits; empty where nothing is proven
  // A plan was found that fits these; none is below what the device has.
  Table<DeviceId, std::int64_t> capacity_bytes;
  MoreDevices devices;
};

// Plans again, without a search, with larger memories, halving the range between what is proven to
// be too little and what `plan` needs, and with more devices, up to twice as many as there are:
// each at most `kEnoughTrials` times and until `kEnoughOps` ops were planned, so that large graphs
// are not planned again and `plan`'s own need is the answer. All trials together get the budget of
// one plan. `plan` must be one that does not fit.
inline constexpr int kEnoughTrials = 4;
inline constexpr std::size_t kEnoughOps = 10'000;
Enough find_enough(const Problem& problem, const Plan& plan, std::string_view algorithm,
                   const Run& run);

}  // namespace pardnn
