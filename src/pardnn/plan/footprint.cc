#include "pardnn/plan/footprint.h"

#include <algorithm>
#include <map>

namespace pardnn {

Table<TensorId, std::int64_t> least_buffer_bytes(const Problem& problem) {
  const Graph& graph = problem.graph();
  Table<TensorId, std::int64_t> least(graph.tensors().size());
  for (const TensorId tensor : graph.tensors()) {
    least[tensor] = problem.buffer_bytes(tensor);
    const Tensor& row = graph.tensor(tensor);
    if (!row.alias_of) continue;
    const Input& behind = graph.inputs(row.producer)[*row.alias_of];
    least[tensor] =
        std::min(least[tensor], behind.is_variable() ? problem.buffer_bytes(behind.variable())
                                                     : least[behind.tensor()]);
  }
  return least;
}

std::int64_t variable_bytes(const Problem& problem, UnitId unit) {
  std::int64_t bytes = 0;
  for (const VariableId variable : problem.variables(unit)) bytes += problem.buffer_bytes(variable);
  return bytes;
}

std::int64_t made_bytes(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph();
  std::int64_t bytes = problem.workspace_bytes(op);
  for (const TensorId tensor : graph.outputs(op)) {
    const Tensor& output = graph.tensor(tensor);
    if (!output.alias_of && !output.takes_over) bytes += problem.buffer_bytes(tensor);
  }
  return bytes;
}

namespace {

// Two inputs may be names of one buffer; then the larger of the two least sizes counts. What lies
// in the unit's own variables is counted with them.
std::int64_t working_bytes(const Problem& problem, OpId op,
                           const Table<TensorId, std::int64_t>& behind) {
  const Graph& graph = problem.graph();
  std::map<TensorId, std::int64_t> tensors;
  std::map<VariableId, std::int64_t> variables;  // of other units
  for (const Input& input : graph.inputs(op)) {
    if (input.is_variable()) continue;
    const Origin origin = graph.origin(input.tensor());
    std::int64_t& bytes = origin.tensor ? tensors[*origin.tensor] : variables[*origin.variable];
    if (origin.variable && problem.unit(*origin.variable) == problem.unit(op)) continue;
    bytes = std::max(bytes, behind[input.tensor()]);
  }
  std::int64_t sum = made_bytes(problem, op);
  for (const auto& [tensor, bytes] : tensors) sum += bytes;
  for (const auto& [variable, bytes] : variables) sum += bytes;
  return sum;
}

}  // namespace

std::int64_t least_bytes(const Problem& problem, UnitId unit,
                         const Table<TensorId, std::int64_t>& behind) {
  std::int64_t working = 0;
  for (const OpId op : problem.ops(unit)) {
    working = std::max(working, working_bytes(problem, op, behind));
  }
  return variable_bytes(problem, unit) + working;
}

}  // namespace pardnn
