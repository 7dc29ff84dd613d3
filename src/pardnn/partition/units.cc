// Small questions about units that several planners ask.
#include "pardnn/partition/units.h"

#include <optional>

#include "pardnn/partition/times.h"

namespace pardnn {

std::int64_t bytes_of(const Problem& problem, UnitId unit) {
  const Graph& graph = problem.graph();
  std::int64_t bytes = 0;
  for (const VariableId variable : problem.variables(unit)) {
    bytes = saturating_add(bytes, problem.buffer_bytes(variable));
  }
  for (const OpId op : problem.ops(unit)) {
    for (const TensorId tensor : graph.outputs(op)) {
      if (graph.tensor(tensor).alias_of.has_value()) continue;
      bytes = saturating_add(bytes, problem.buffer_bytes(tensor));
    }
  }
  return bytes;
}

std::vector<UnitId> lineup(const Problem& problem, const std::vector<OpId>& order) {
  std::vector<UnitId> units;
  Table<UnitId, char> seen(problem.units().size(), 0);
  for (const OpId op : order) {
    const UnitId unit = *problem.unit(op);
    if (seen[unit]) continue;
    seen[unit] = 1;
    units.push_back(unit);
  }
  return units;
}

void place_idle_units(const Problem& problem, Table<DeviceId, std::int64_t> bytes,
                      UnitPlacement& placement) {
  const auto room = [&](DeviceId device) { return problem.limit_bytes(device) - bytes[device]; };
  for (const UnitId unit : problem.units()) {
    if (!problem.ops(unit).empty()) continue;
    std::optional<DeviceId> best;
    for (const DeviceId device : problem.devices()) {
      if (!problem.is_allowed(unit, device)) continue;
      if (!best || room(device) > room(*best)) best = device;
    }
    placement[unit] = *best;
    bytes[*best] = saturating_add(bytes[*best], bytes_of(problem, unit));
  }
}

}  // namespace pardnn
