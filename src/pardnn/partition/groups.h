// Groups, step 1c of ParDNN: from devices of nodes to devices of units.
#pragma once

#include "pardnn/plan/plan.h"
#include "pardnn/partition/clusters_to_devices.h"
#include "pardnn/partition/flow.h"
#include "pardnn/partition/mapping.h"

namespace pardnn {

// All of a unit goes to the allowed device with the largest sum of its own work there and of
// transfers with what is there; ties to the least id. Units of which a part may not stay where its
// cluster is go likewise. Units in the order of their ids, each seeing what was decided before.
UnitPlacement place_groups(const Problem& problem, const Flow& flow,
                           const PrimaryOfNode& primary_of, const DeviceOfPrimary& devices);

}  // namespace pardnn
