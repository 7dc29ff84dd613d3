// LocalBuffers: which buffers every op of a placement reads and makes, and what is left to read.
#include "pardnn/partition/local_buffers.h"

#include <algorithm>

#include "pardnn/partition/edges.h"

namespace pardnn {

LocalBuffers::LocalBuffers(const Problem& problem, const UnitPlacement& placement)
    : device_(problem.graph().ops().size()),
      own_(problem.graph().tensors().size()),
      copy_slots_(problem.graph().tensors().size()),
      taken_(problem.graph().ops().size(), 0),
      kept_(problem.graph().ops().size(), 0),
      freed_(problem.graph().ops().size(), 0),
      used_(problem.device_count(), 0) {
  const Graph& graph = problem.graph();
  for (const OpId op : graph.ops()) {
    if (!graph.is_every(op)) device_[op] = placement[*problem.unit(op)];
  }
  for (const OpId op : graph.ops()) {
    if (!graph.is_every(op)) {
      add_outputs(problem, op);
      add_reads(graph, op);
    }
    copies_.close();
    reads_.close();
  }
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      if (graph.tensor(tensor).alias_of.has_value()) continue;
      const Slot& slot = slots_[*own_[tensor]];
      if (slot.readers > 0 || slot.fetched) kept_[op] += slot.bytes;
    }
  }
  for (const Slot& slot : slots_) {
    if (slot.readers != 1 || slot.fetched) continue;
    freed_[OpId{static_cast<std::uint32_t>(slot.reader_sum)}] += slot.bytes;
  }
  count_resident_bytes(problem, placement);
}

void LocalBuffers::add_outputs(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph();
  const DeviceId here = device_[op];
  taken_[op] = problem.workspace_bytes(op);
  for (const TensorId tensor : graph.outputs(op)) {
    const Tensor& output = graph.tensor(tensor);
    const std::int64_t bytes = problem.buffer_bytes(tensor);
    if (output.alias_of.has_value()) {
      const Input& base = graph.inputs(op)[*output.alias_of];
      if (!base.is_variable()) own_[tensor] = slot_of(graph, base.tensor(), here);
    } else {
      own_[tensor] = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back({.device = here, .bytes = bytes});
      taken_[op] += bytes;
    }
    if (output.fetched && own_[tensor].has_value()) slots_[*own_[tensor]].fetched = true;
    for (const OpId reader : graph.readers(tensor)) {
      if (device_[reader] == here || slot_of(graph, tensor, device_[reader])) continue;
      copy_slots_[tensor].push_back(static_cast<std::uint32_t>(slots_.size()));
      copies_.add(static_cast<std::uint32_t>(slots_.size()));
      slots_.push_back({.device = device_[reader], .bytes = bytes});
    }
  }
}

std::optional<std::uint32_t> LocalBuffers::slot_of(const Graph& graph, TensorId tensor,
                                                   DeviceId device) const {
  const OpId producer = graph.tensor(tensor).producer;
  if (graph.is_every(producer)) return std::nullopt;
  if (device_[producer] == device) return own_[tensor];
  for (const std::uint32_t slot : copy_slots_[tensor]) {
    if (slots_[slot].device == device) return slot;
  }
  return std::nullopt;
}

void LocalBuffers::add_reads(const Graph& graph, OpId op) {
  const std::size_t first = reads_.values().size();
  for (const Input& input : graph.inputs(op)) {
    if (input.is_variable()) continue;
    const std::optional<std::uint32_t> slot = slot_of(graph, input.tensor(), device_[op]);
    if (!slot.has_value()) continue;
    const std::vector<std::uint32_t>& all = reads_.values();
    if (std::find(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), *slot) !=
        all.end()) {
      continue;
    }
    reads_.add(*slot);
    ++slots_[*slot].readers;
    slots_[*slot].reader_sum += index(op);
  }
}

void LocalBuffers::count_resident_bytes(const Problem& problem, const UnitPlacement& placement) {
  const Graph& graph = problem.graph();
  for (const DeviceId device : problem.devices()) used_[device] = problem.reserve_bytes(device);
  for (const VariableId variable : graph.variables()) {
    used_[placement[problem.unit(variable)]] += problem.buffer_bytes(variable);
  }
  // A buffer of an `every` op is on each device that reads it or an alias of it (rule X1).
  Table<TensorId, DeviceSet> read_on(graph.tensors().size());
  for (std::size_t n = graph.ops().size(); n-- > 0;) {
    const OpId op = graph.ops()[n];
    if (!graph.is_every(op)) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      const Origin origin = graph.origin(tensor);
      if (!origin.tensor.has_value()) continue;
      for (const OpId reader : graph.readers(tensor)) {
        if (!graph.is_every(reader)) read_on[*origin.tensor].set(index(device_[reader]));
      }
    }
  }
  for (const TensorId tensor : graph.tensors()) {
    if (read_on[tensor].none()) continue;
    for (const DeviceId device : problem.devices()) {
      if (read_on[tensor][index(device)]) used_[device] += problem.buffer_bytes(tensor);
    }
  }
}

std::optional<OpId> LocalBuffers::read(std::uint32_t slot_index, OpId reader) {
  Slot& slot = slots_[slot_index];
  --slot.readers;
  slot.reader_sum -= index(reader);
  if (slot.fetched) return std::nullopt;
  if (slot.readers == 0) used_[slot.device] -= slot.bytes;
  if (slot.readers != 1) return std::nullopt;
  const OpId last{static_cast<std::uint32_t>(slot.reader_sum)};
  freed_[last] += slot.bytes;
  return last;
}

}  // namespace pardnn
