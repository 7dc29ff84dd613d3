// A placement given from outside, made a plan: the rest of the answer, the orders, is ours.
#pragma once

#include <optional>

#include "pardnn/plan/plan.h"

namespace pardnn {

// The plan of a placement, with the sequences given or, without any, with the ops of each device
// listed by the longest path that follows them. Throws Error for a placement that splits a group,
// for a device that a transfer needs a link from or to and has none, and for sequences that form a
// cycle or miss an op. The checker has confirmed it.
Plan plan_of(const Problem& problem, const Placement& placement,
             const std::optional<Sequences>& sequences);

}  // namespace pardnn
