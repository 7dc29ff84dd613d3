// Edges between the ordinary ops of a graph, as planners walk them: data inputs and control edges
// alike, `every` ops left out.
#pragma once

#include <optional>

#include "pardnn/graph/graph.h"

namespace pardnn {

// Calls visit(producer, tensor) for every data input of `op` in the order written, then
// visit(producer, nothing) for every control edge. A tensor read twice is visited twice.
template <class Visit>
void for_each_producer(const Graph& graph, OpId op, Visit visit) {
  for (const Input& input : graph.inputs(op)) {
    if (input.is_variable()) continue;
    const OpId producer = graph.tensor(input.tensor()).producer;
    if (!graph.is_every(producer)) visit(producer, std::optional<TensorId>(input.tensor()));
  }
  for (const OpId producer : graph.controls(op)) visit(producer, std::optional<TensorId>());
}

// Calls visit(reader, tensor) for every reader of every output of `op`, then visit(reader,
// nothing) for every op that waits for it by a control edge. `op` must not be an `every` op.
template <class Visit>
void for_each_reader(const Graph& graph, OpId op, Visit visit) {
  for (const TensorId tensor : graph.outputs(op)) {
    for (const OpId reader : graph.readers(tensor)) visit(reader, std::optional<TensorId>(tensor));
  }
  for (const OpId reader : graph.control_readers(op)) visit(reader, std::optional<TensorId>());
}

}  // namespace pardnn
