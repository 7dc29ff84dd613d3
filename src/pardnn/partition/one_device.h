// Row `one-device`: everything on the device where the step is shortest.
#pragma once

#include "pardnn/partition/rows.h"

namespace pardnn {

// Of the devices on which the most units are allowed, the one with the least total time, then the
// highest limit, then the least id. Units not allowed there go to the allowed device with the
// largest limit. The order frees memory as early as it can: on one device no order is shorter
// than another.
Proposal one_device(const Problem& problem, const Run& run);

}  // namespace pardnn
