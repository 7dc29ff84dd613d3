// Confirm: no plan is handed out that the checker, written apart from all planners, disagrees with.
#pragma once

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// Throws BrokenPromise with the checker's first sentences when it finds anything wrong: a defect of
// ours, whatever the input. That a plan does not fit is nothing wrong if it says so.
void confirm(const Problem& problem, const Plan& plan);

}  // namespace pardnn
