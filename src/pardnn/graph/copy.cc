#include "pardnn/graph/copy.h"

namespace pardnn {

void copy_head(const Graph& graph, GraphBuilder& builder) {
  for (const auto& [key, value] : graph.about()) builder.about(key, value);
  std::vector<std::string> kinds;
  for (const KindId kind : graph.kinds()) kinds.emplace_back(graph.name(kind));
  builder.kinds(std::move(kinds));
}

VariableSpec spec_of(const Graph& graph, VariableId variable) {
  VariableSpec spec;
  spec.key = graph.key(variable);
  spec.bytes = graph.bytes(variable);
  if (const auto group = graph.group(variable)) spec.group = graph.name(*group);
  spec.pins = graph.pins(variable);
  spec.notes = graph.notes(variable);
  return spec;
}

OpSpec spec_of(const Graph& graph, OpId op) {
  OpSpec spec;
  spec.key = graph.key(op);
  spec.type = graph.type(op);
  for (const KindId kind : graph.kinds()) spec.costs.push_back(graph.cost(op, kind));
  for (const Input& input : graph.inputs(op)) {
    InputSpec one;
    if (input.is_variable()) {
      one.key = graph.key(input.variable());
    } else {
      const Tensor& tensor = graph.tensor(input.tensor());
      one.key = graph.key(tensor.producer);
      one.output = tensor.number;
    }
    one.modifies = input.modifies();
    spec.inputs.push_back(one);
  }
  for (const OpId before : graph.controls(op)) {
    InputSpec one;
    one.key = graph.key(before);
    one.control = true;
    spec.inputs.push_back(one);
  }
  for (const TensorId output : graph.outputs(op)) {
    const Tensor& tensor = graph.tensor(output);
    OutputSpec one;
    one.bytes = tensor.bytes;
    one.alias_of = tensor.alias_of;
    one.takes_over = tensor.takes_over;
    one.fetched = tensor.fetched;
    spec.outputs.push_back(one);
  }
  if (const auto group = graph.group(op)) spec.group = graph.name(*group);
  spec.workspace_bytes = graph.workspace_bytes(op);
  spec.phase = graph.phase(op);
  spec.pins = graph.pins(op);
  spec.flops = graph.flops(op);
  spec.moved_bytes = graph.moved_bytes(op);
  spec.at = graph.at(op);
  spec.every = graph.is_every(op);
  spec.notes = graph.notes(op);
  return spec;
}

}  // namespace pardnn
