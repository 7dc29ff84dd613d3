// A lower bound on the step time: no plan for the problem can have a shorter step.
#pragma once

#include <cstdint>

#include "pardnn/problem/problem.h"

namespace pardnn {

// Every op has a head and a tail, what must pass before and after it (earliest.h). The bound is the
// greatest of: head + time + tail of one op; the ops of one unit, and those that can run on one
// device only, one after another between their heads and tails (one_device.h); and the work that
// all devices have to share between any head and tail (shared_work.h). What all of these count is
// least times and least crossings; memory is left out, and contention but for tensors that go
// together from one op to another. At least 0; 0 only for a step without ops.
// Seconds of one core: 0.3 for 10 thousand ops, 1 for 100 thousand, 3 for a million.
std::int64_t lower_bound_ns(const Problem& problem);

}  // namespace pardnn
