// Small questions about units that several planners ask.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// Bytes of the unit's variables and of all its outputs that are no aliases, as if none were freed.
std::int64_t bytes_of(const Problem& problem, UnitId unit);

// Units that have ops, each once, by the first of their ops in `order`.
std::vector<UnitId> lineup(const Problem& problem, const std::vector<OpId>& order);

// Units without ops (variables that nothing touches) go, each in turn, to the allowed device with
// the most room above `bytes`, ties to the least id.
void place_idle_units(const Problem& problem, Table<DeviceId, std::int64_t> bytes,
                      UnitPlacement& placement);

}  // namespace pardnn
