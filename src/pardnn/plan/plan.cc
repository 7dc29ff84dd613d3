#include "pardnn/plan/plan.h"

#include <algorithm>

#include "pardnn/base/error.h"

namespace pardnn {

Placement expand(const Problem& problem, const UnitPlacement& units) {
  PARDNN_CHECK(units.size() == problem.units().size());
  Placement placement;
  placement.ops.resize(problem.graph().ops().size());
  placement.variables.resize(problem.graph().variables().size());
  for (UnitId unit : problem.units()) {
    for (OpId op : problem.ops(unit)) placement.ops[op] = units[unit];
    for (VariableId variable : problem.variables(unit)) placement.variables[variable] = units[unit];
  }
  return placement;
}

Sequences sequences_of(const Problem& problem, const Placement& placement,
                       std::span<const OpId> order) {
  if (problem.rules().given_order) order = problem.given_order();
  Sequences sequences(problem.device_count());
  for (OpId op : order) sequences[*placement.ops[op]].push_back(op);
  return sequences;
}

std::int64_t counted_bytes(const Problem& problem, const Peak& peak) {
  return problem.rules().any_timing ? peak.any_timing_bytes : peak.bytes;
}

Score score_of(const Problem& problem, const Prediction& prediction) {
  Score score{
      .overflow_bytes = 0, .step_ns = prediction.step_ns, .bytes_sent = prediction.bytes_sent};
  for (DeviceId device : problem.devices()) {
    const Peak& peak = prediction.peaks[device];
    const std::int64_t bytes = counted_bytes(problem, peak);
    score.overflow_bytes += std::max<std::int64_t>(0, bytes - problem.limit_bytes(device));
  }
  return score;
}

}  // namespace pardnn
