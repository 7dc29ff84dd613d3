// Trace: a plan as a timeline that Chrome's and Perfetto's viewers open.
#pragma once

#include <string>

#include "pardnn/plan/plan.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {

// Trace Event Format (JSON): a track per device with its ops, one per channel with its transfers,
// and a counter of the bytes in use on each device.
std::string trace_json(const Problem& problem, const Plan& plan);

}  // namespace pardnn
