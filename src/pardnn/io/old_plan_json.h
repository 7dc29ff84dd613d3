// Old plans: plan files read for what they say of another problem.
#pragma once

#include <string_view>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/old_plan.h"

namespace pardnn {

// Ops and variables are matched by key, devices by name or, where no name is the same, by position.
// Throws Error `source: …` when the text is no plan, or when no op of it is one of the graph.
OldPlan read_old_plan(std::string_view text, std::string_view source, const Problem& problem);

}  // namespace pardnn
