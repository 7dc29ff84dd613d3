// Clusters to devices, the end of step 1b of ParDNN: one device for each primary cluster.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "pardnn/partition/flow.h"
#include "pardnn/partition/mapping.h"

namespace pardnn {

// Device of each primary, one to one.
using DeviceOfPrimary = Table<ClusterId, DeviceId>;

// Primaries with pinned work take the device of most of it, most first; then the heaviest takes
// the fastest free device. Ties to the least ids.
DeviceOfPrimary clusters_to_devices(const Problem& problem, const Flow& flow,
                                    const PrimaryOfNode& primary_of);

// Whether another assignment could be better: devices or links differ, or something is pinned.
bool devices_differ(const Problem& problem);

// Swaps pairs while step_ns(assignment), nothing for one that cannot run, falls; at most `trials`
// calls.
DeviceOfPrimary swap_devices(
    DeviceOfPrimary devices, int trials,
    const std::function<std::optional<std::int64_t>(const DeviceOfPrimary&)>& step_ns);

}  // namespace pardnn
