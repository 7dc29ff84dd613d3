#include "pardnn/problem/plenty.h"

#include <algorithm>
#include <cstdint>

#include "pardnn/base/integers.h"

namespace pardnn {

bool memory_is_plenty(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::int64_t bytes = 0, workspace_bytes = 0;
  for (const VariableId variable : graph.variables()) {
    bytes = saturating_add(bytes, problem.buffer_bytes(variable));
  }
  for (const TensorId tensor : graph.tensors()) {
    bytes = saturating_add(bytes, problem.buffer_bytes(tensor));
  }
  for (const OpId op : graph.ops()) {
    workspace_bytes = std::max(workspace_bytes, problem.workspace_bytes(op));
  }
  bytes = saturating_add(bytes, workspace_bytes);
  return std::all_of(problem.devices().begin(), problem.devices().end(), [&](DeviceId device) {
    return saturating_add(bytes, problem.reserve_bytes(device)) <= problem.limit_bytes(device);
  });
}

}  // namespace pardnn
