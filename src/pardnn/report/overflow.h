// What stands in the way when a plan does not fit, in sentences.
#pragma once

#include <string>

#include "pardnn/plan/plan.h"

namespace pardnn {

// The device that overflows most, the moment, the bytes missing and its largest holders then; an
// empty text for a plan that fits.
std::string overflow_text(const Problem& problem, const Plan& plan);

}  // namespace pardnn
