// LiveBytes: what every device holds while a step is listed and devices are still being chosen.
#include "pardnn/partition/live_bytes.h"

#include <algorithm>
#include <utility>

#include "pardnn/partition/times.h"

namespace pardnn {

LiveBytes::LiveBytes(const Problem& problem)
    : problem_(problem),
      moments_(problem.graph().ops().size() + 2),
      device_(problem.graph().ops().size()),
      open_(problem.graph().tensors().size(), 0),
      kept_(problem.graph().tensors().size(), 0),
      in_variable_(problem.graph().tensors().size(), 0),
      every_there_(problem.graph().tensors().size()),
      held_(problem.graph().tensors().size()),
      taken_(problem.graph().ops().size(), 0),
      made_(problem.graph().ops().size(), 0),
      unit_settled_(problem.units().size(), 0),
      variable_bytes_(problem.units().size(), 0),
      profiles_(problem.device_count(), Profile(moments_)),
      room_bytes_(problem.device_count(), 0),
      promised_(problem.device_count(), 0) {
  const Graph& graph = problem.graph();
  for (const OpId op : graph.ops()) {
    std::vector<TensorId> values, constants;
    for (const Input& input : graph.inputs(op)) {
      if (graph.is_every(op) || input.is_variable()) continue;
      const TensorId value = value_of(input.tensor());
      (graph.is_every(graph.tensor(value).producer) ? constants : values).push_back(value);
    }
    const auto enter = [](std::vector<TensorId>& some, Lists<OpId, TensorId>& all) {
      std::sort(some.begin(), some.end());
      some.erase(std::unique(some.begin(), some.end()), some.end());
      for (const TensorId value : some) all.add(value);
      all.close();
    };
    enter(values, reads_);
    enter(constants, every_);
    for (const TensorId value : values) ++open_[value];
  }
  for (const TensorId tensor : graph.tensors()) {
    if (graph.tensor(tensor).fetched) kept_[value_of(tensor)] = 1;
    in_variable_[tensor] = graph.origin(tensor).variable.has_value();
  }
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    taken_[op] = problem.workspace_bytes(op);
    for (const TensorId tensor : graph.outputs(op)) {
      if (graph.tensor(tensor).alias_of.has_value()) continue;
      taken_[op] += problem.buffer_bytes(tensor);
      if (is_kept(tensor)) made_[op] += problem.buffer_bytes(tensor);
    }
  }
  for (const UnitId unit : problem.units()) {
    for (const VariableId variable : problem.variables(unit)) {
      variable_bytes_[unit] += problem.buffer_bytes(variable);
    }
    promised_bytes_ += variable_bytes_[unit];
  }
  for (const DeviceId device : problem.devices()) {
    add(device, 0, problem.reserve_bytes(device));
    room_bytes_[device] =
        std::max<std::int64_t>(0, problem.limit_bytes(device) - problem.reserve_bytes(device));
    all_room_bytes_ = saturating_add(all_room_bytes_, room_bytes_[device]);
  }
  promise();
}

TensorId LiveBytes::value_of(TensorId tensor) const {
  const Graph& graph = problem_.graph();
  while (const std::optional<std::uint32_t> input = graph.tensor(tensor).alias_of) {
    const Input& base = graph.inputs(graph.tensor(tensor).producer)[*input];
    if (base.is_variable()) break;
    tensor = base.tensor();
  }
  return tensor;
}

void LiveBytes::promise() {
  __extension__ using Wide = __int128;
  for (const DeviceId device : problem_.devices()) {
    const auto part = static_cast<std::int64_t>(Wide{promised_bytes_} * room_bytes_[device] /
                                                std::max<std::int64_t>(1, all_room_bytes_));
    add(device, 0, part - promised_[device]);
    promised_[device] = part;
  }
}

void LiveBytes::settle_unit(UnitId unit, DeviceId device) {
  unit_settled_[unit] = 1;
  if (variable_bytes_[unit] == 0) return;
  add(device, 0, variable_bytes_[unit]);
  promised_bytes_ -= variable_bytes_[unit];
  promise();
}

LiveBytes::Held* LiveBytes::find(TensorId value, DeviceId device) {
  for (Held& held : held_[value]) {
    if (held.device == device) return &held;
  }
  return nullptr;
}

const LiveBytes::Held* LiveBytes::find(TensorId value, DeviceId device) const {
  for (const Held& held : held_[value]) {
    if (held.device == device) return &held;
  }
  return nullptr;
}

void LiveBytes::leave(TensorId value, Held& held) {
  add(held.device, now_, -bytes(value, held));
  held.there = false;
  held.from = now_;
}

void LiveBytes::start(OpId op) {
  ++now_;
  const DeviceId device = device_[op];
  add(device, now_, taken_[op]);
  for (const TensorId tensor : problem_.graph().outputs(op)) {
    if (value_of(tensor) != tensor) continue;
    held_[tensor].push_back({.device = device, .from = now_, .there = is_kept(tensor)});
  }
}

std::int64_t LiveBytes::most_with(OpId op, DeviceId device,
                                  const std::vector<UnitId>& unsettled) const {
  std::int64_t bytes = 0;  // all step
  for (const UnitId unit : unsettled) bytes += variable_bytes_[unit];
  for (const TensorId value : every_[op]) {
    if (!every_there_[value][index(device)]) bytes += problem_.buffer_bytes(value);
  }
  std::vector<std::pair<std::size_t, std::int64_t>> sent;  // from when, bytes
  for (const TensorId value : reads_[op]) {
    const Held* held = find(value, device);
    if (held_[value].empty() || (held != nullptr && held->there)) continue;
    const Held& from = held != nullptr ? *held : held_[value].front();
    sent.emplace_back(from.from,
                      held == nullptr ? problem_.buffer_bytes(value) : this->bytes(value, *held));
  }
  std::sort(sent.begin(), sent.end());
  sent.emplace_back(now_, taken_[op]);
  const Profile& profile = profiles_[device];
  std::int64_t most = bytes > 0 ? bytes + profile.most(0, now_) : 0;
  for (std::size_t n = 0; n < sent.size(); ++n) {
    bytes += sent[n].second;
    const std::size_t end = n + 1 < sent.size() ? sent[n + 1].first : moments_;
    if (sent[n].first < end) most = std::max(most, bytes + profile.most(sent[n].first, end));
  }
  return most;
}

std::int64_t LiveBytes::sent_bytes(OpId op, DeviceId device) const {
  std::int64_t bytes = 0;
  for (const TensorId value : reads_[op]) {
    if (find(value, device) == nullptr) bytes += problem_.buffer_bytes(value);
  }
  return bytes;
}

std::int64_t LiveBytes::growth_bytes(OpId op) const {
  std::int64_t growth = made_[op];
  for (const TensorId value : reads_[op]) {
    const Held& held = *find(value, device_[op]);
    const bool is_home = &held == &held_[value].front();
    if (held.readers == 1 && !(is_home && is_kept(value))) growth -= bytes(value, held);
  }
  return growth;
}

}  // namespace pardnn
