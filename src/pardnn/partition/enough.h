// How much memory would be enough, when a plan does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/plan/impossible.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/run.h"

namespace pardnn {

struct Enough {
  std::vector<Impossible> impossible;  // proven: no plan fits; empty where nothing is proven
  // Tried: a plan was found that fits these capacities.
  Table<DeviceId, std::int64_t> capacity_bytes;
};

// Plans again with larger memories, at most `kEnoughTrials` times, halving the range between what
// there is and what `plan` needs; not at all for graphs above `kEnoughOps`, where `plan`'s own
// need is the answer. `plan` must be one that does not fit.
inline constexpr int kEnoughTrials = 4;
inline constexpr std::size_t kEnoughOps = 30'000;
Enough find_enough(const Problem& problem, const Plan& plan, std::string_view algorithm,
                   const Run& run);

// Sentences that say so; empty for a plan that fits.
std::string enough_text(const Problem& problem, const Plan& plan, std::string_view algorithm,
                        const Run& run);

}  // namespace pardnn
