// OldPlan: what a plan made before, perhaps of another graph or for another machine, says of this
// problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pardnn/base/ids.h"
#include "pardnn/base/table.h"

namespace pardnn {

struct OldPlan {
  // By id in the graph of today: nothing where the old plan has no such key, or its device is gone.
  Table<OpId, std::optional<DeviceId>> ops;
  Table<VariableId, std::optional<DeviceId>> variables;
  Table<OpId, std::optional<std::int64_t>> start_ns;  // of every op that the old plan has
  std::size_t op_count = 0;                           // of the old plan
  bool is_of_this_problem = false;                    // same graph, machine and rules
};

}  // namespace pardnn
