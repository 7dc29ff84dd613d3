// Memory of a replayed plan: the most bytes on each device, in fact and for any timing.
#pragma once

#include "pardnn/plan/plan.h"
#include "pardnn/check/replay.h"

namespace pardnn::checking {

// Rules M and X of the model on the times of the replay. The any-timing part (rule E1) is computed
// under sequence dispatch only and is 0 otherwise.
Table<DeviceId, Peak> peaks(const Problem& problem, const Placement& placement,
                            const Replay& replay);

}  // namespace pardnn::checking
