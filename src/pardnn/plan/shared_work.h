// The bound by shared work: what must be done between a head and a tail, over all devices.
#pragma once

#include <cstdint>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/earliest.h"

namespace pardnn {

// Let every device d have a weight y_d >= 0, all together 1. What has a head >= h and a tail >= q
// runs between h and T - q in any plan of step T, so every device does at most T - h - q of it, and
// T >= h + q + sum over these ops of the least y_d * (duration on d) among the devices allowed.
// That holds for any weights, h and q. Equal weights give work / K; among devices of unequal speed,
// weights proportional to the speed are best. Both are tried, and each kind alone, which counts the
// ops that can run nowhere else. All heads and tails are tried: O(ops * (kinds + log ops)).
std::int64_t shared_work_ns(const Problem& problem, const HeadsAndTails& bounds);

}  // namespace pardnn
