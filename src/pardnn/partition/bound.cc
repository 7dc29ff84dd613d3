// A lower bound on the step.
#include "pardnn/partition/bound.h"

#include <algorithm>

#include "pardnn/partition/edges.h"
#include "pardnn/partition/times.h"

namespace pardnn {

std::int64_t lower_bound_ns(const Problem& problem) {
  const Graph& graph = problem.graph();
  const auto count = static_cast<std::int64_t>(problem.device_count());
  Table<OpId, std::int64_t> finish(graph.ops().size(), 0);
  std::int64_t longest = 0, work = 0;
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    const UnitId unit = *problem.unit(op);
    std::int64_t least = kMaxQuantity, start = 0;
    for (const DeviceId device : problem.devices()) {
      if (problem.is_allowed(unit, device)) {
        least = std::min(least, problem.duration_ns(op, device));
      }
    }
    for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId>) {
      start = std::max(start, finish[producer]);
    });
    finish[op] = saturating_add(start, least);
    longest = std::max(longest, finish[op]);
    work = saturating_add(work, least);
  }
  return std::max(longest, work / count + (work % count != 0));
}

}  // namespace pardnn
