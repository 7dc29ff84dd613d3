#include "pardnn/sim/lifetimes.h"

#include <algorithm>
#include <map>

namespace pardnn {

Lifetimes::Lifetimes(const Problem& problem, const Schedule& schedule)
    : problem_(problem),
      graph_(problem.graph()),
      schedule_(schedule),
      tensor_count_(problem.graph().tensors().size()) {
  std::map<TensorId, std::size_t> row_of;
  for (TensorId tensor : graph_.tensors()) {
    const OpId producer = graph_.tensor(tensor).producer;
    if (!graph_.is_every(producer)) {
      if (graph_.tensor(tensor).takes_over) takers_.push_back(tensor);
      continue;
    }
    const auto is_ordinary = [&](OpId op) { return !graph_.is_every(op); };
    if (std::ranges::none_of(graph_.readers(tensor), is_ordinary)) continue;
    const TensorId origin = *graph_.origin(tensor).tensor;
    const auto [row, is_new] = row_of.emplace(origin, every_buffers_.size());
    if (is_new) every_buffers_.push_back({.tensor = origin, .held_at = {}});
    every_tensors_.emplace_back(tensor, row->second);
  }
}

void Lifetimes::compute(const Table<VariableId, DeviceId>& variables) {
  uses_.assign(tensor_count_ + schedule_.transfers.size(), {});
  behind_.assign(tensor_count_, std::nullopt);
  for (OpId op : graph_.ops()) {
    if (!graph_.is_every(op)) use_outputs(op);
  }
  take_over();
  hold_resident(variables);
}

void Lifetimes::use_outputs(OpId op) {
  for (TensorId tensor : graph_.outputs(op)) {
    if (const auto alias_of = graph_.tensor(tensor).alias_of) {
      behind_[tensor] = behind(graph_.inputs(op)[*alias_of], schedule_.device[op]);
    } else {
      behind_[tensor] = own(tensor);
      uses_[own(tensor)].is_allocated = true;
      uses_[own(tensor)].last_position = schedule_.position[op];
    }
    use_tensor(tensor, op);
  }
}

// M1 and M2 for one tensor: its readers here keep the buffer behind it, those elsewhere the copies
// there; its transfers and a fetch keep the buffer behind it.
void Lifetimes::use_tensor(TensorId tensor, OpId producer) {
  const DeviceId device = schedule_.device[producer];
  const std::optional<BufferId> buffer = behind_[tensor];
  for (OpId reader : graph_.readers(tensor)) {
    const DeviceId at = schedule_.device[reader];
    if (at == device && !buffer) continue;
    BufferUse& use = uses_[at == device ? *buffer : copy(schedule_.transfer_of(tensor, at))];
    use.last_position = std::max(use.last_position, schedule_.position[reader]);
  }
  for (std::uint32_t n = 0; n < schedule_.transfer_count[tensor]; ++n) {
    const std::uint32_t slot = schedule_.first_transfer[tensor] + n;
    uses_[copy(slot)].is_allocated = true;
    if (!buffer) continue;
    std::int64_t& last = uses_[*buffer].last_arrival_ns;
    last = std::max(last, schedule_.transfers[slot].arrival_ns);
  }
  if (buffer && graph_.tensor(tensor).fetched) uses_[*buffer].is_fetched = true;
}

std::optional<BufferId> Lifetimes::behind(const Input& input, DeviceId device) const {
  if (input.is_variable()) return std::nullopt;
  const TensorId tensor = input.tensor();
  const OpId producer = graph_.tensor(tensor).producer;
  if (graph_.is_every(producer)) return std::nullopt;
  if (schedule_.device[producer] == device) return behind_[tensor];
  return copy(schedule_.transfer_of(tensor, device));
}

std::int64_t Lifetimes::bytes(BufferId buffer) const {
  if (index(buffer) < tensor_count_) return problem_.buffer_bytes(TensorId{index(buffer)});
  return problem_.rounded(schedule_.transfers[index(buffer) - tensor_count_].bytes);
}

std::int64_t Lifetimes::end_ns(const BufferUse& use, DeviceId device) const {
  if (use.is_fetched) return schedule_.step_ns;
  const OpId last = schedule_.sequences[device][use.last_position];
  return std::max(schedule_.finish_ns[last], use.last_arrival_ns);
}

// M6, V1, X1.
void Lifetimes::hold_resident(const Table<VariableId, DeviceId>& variables) {
  resident_bytes_.assign(problem_.device_count(), 0);
  for (DeviceId device : problem_.devices()) {
    resident_bytes_[device] = problem_.reserve_bytes(device);
  }
  for (VariableId variable : graph_.variables()) {
    resident_bytes_[variables[variable]] += problem_.buffer_bytes(variable);
  }
  for (EveryBuffer& buffer : every_buffers_) buffer.held_at = {};
  for (const auto& [tensor, row] : every_tensors_) {
    for (OpId reader : graph_.readers(tensor)) {
      if (!graph_.is_every(reader)) every_buffers_[row].held_at.set(schedule_.device[reader]);
    }
  }
  for (const EveryBuffer& buffer : every_buffers_) {
    buffer.held_at.for_each(
        [&](DeviceId device) { resident_bytes_[device] += problem_.buffer_bytes(buffer.tensor); });
  }
}

}  // namespace pardnn
