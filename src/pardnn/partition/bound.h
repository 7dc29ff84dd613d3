// A lower bound on the step: no plan for this problem is shorter.
#pragma once

#include <cstdint>

#include "pardnn/problem/problem.h"

namespace pardnn {

// max(longest path, work / devices), every op at the least time of its allowed devices, transfers
// at zero.
std::int64_t lower_bound_ns(const Problem& problem);

}  // namespace pardnn
