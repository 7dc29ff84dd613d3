// What a move of one unit does to the transfers of a placement.
#pragma once

#include <cstdint>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/times.h"

namespace pardnn {

struct TransferChange {
  std::int64_t added_ns = 0, saved_ns = 0;  // mean crossing times
};

// Transfers, each a tensor or signal and a destination, that come into being and that go when the
// unit moves to `to`. O(inputs, outputs and their readers).
TransferChange transfer_change(const Problem& problem, const Times& times,
                               const UnitPlacement& placement, UnitId unit, DeviceId to);

}  // namespace pardnn
