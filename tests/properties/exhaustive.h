// The best of all plans of a small problem, by trying every one through the simulator.
#pragma once

#include <cstddef>
#include <optional>

#include "pardnn/plan/plan.h"

namespace pardnn::properties {

// Ordinary ops that a problem for best_of_all may have.
inline constexpr std::size_t kMostExhaustiveOps = 8;

struct BestPlan {
  Placement placement;
  Sequences sequences;
  Score score;
};

// Every unit on every device that it may be on, and on each device every order of its ops that the
// edges leave open; the plan of least score, of equal ones the first found. Nothing when no plan
// exists, as where a tensor would have to go and no link leads. Under Dispatch::kFifo and with a
// given order a placement has one plan only. Without edges n ops on K devices have up to
// n! * C(n + K - 1, K - 1) plans: 40 thousand for 7 on 2, 180 thousand for 7 on 3.
std::optional<BestPlan> best_of_all(const Problem& problem);

}  // namespace pardnn::properties
