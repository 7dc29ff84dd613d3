// A lower bound on the step time: no plan for the problem can have a shorter step.
#pragma once

#include <cstdint>

#include "pardnn/problem/problem.h"

namespace pardnn {

// The greatest of: the longest path of least durations; what one unit takes on its best device; and
// the work that has to be shared. Transfers and memory are left out, so the bound holds with and
// without contention. At least 0; 0 only for a step without ops.
//
// Work: let every device d have a weight y_d >= 0, all together 1. Any plan with step T does at
// most T of work on each device, so T >= sum over devices of y_d * (its work) >= sum over ops of
// the least y_d * (duration on d) among the devices allowed. That holds for any weights. Equal ones
// give work / K; among devices of unequal speed, weights proportional to the speed are best. Both
// are tried, and each kind and each device alone, which counts the ops that can run nowhere else.
// O(ops * kinds + edges).
std::int64_t lower_bound_ns(const Problem& problem);

}  // namespace pardnn
