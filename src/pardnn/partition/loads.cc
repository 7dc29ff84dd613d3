// Loads: per device, the work there and the time of the transfers it receives.
#include "pardnn/partition/loads.h"

#include <algorithm>
#include <utility>

namespace pardnn {

Loads::Loads(const Problem& problem, const Flow& flow, UnitPlacement placement)
    : problem_(problem),
      flow_(flow),
      placement_(std::move(placement)),
      unit_(flow.nodes().size()),
      nodes_(problem.units().size()),
      load_ns_(problem.device_count(), 0) {
  for (const NodeId node : flow.nodes()) {
    unit_[node] = *problem.unit(flow.ops(node).front());
    nodes_[unit_[node]].push_back(node);
    for (const OpId op : flow.ops(node)) {
      load_ns_[device(node)] += problem.duration_ns(op, device(node));
    }
  }
  for (const ValueId value : flow.values()) receive(value, +1);
}

std::int64_t Loads::greatest_ns() const {
  return *std::max_element(load_ns_.begin(), load_ns_.end());
}

// Once for every device other than its maker's that reads it.
void Loads::receive(ValueId value, int sign) {
  const DeviceId home = device(flow_.value(value).maker);
  DeviceSet there;
  for (const NodeId reader : flow_.readers(value)) there.set(index(device(reader)));
  there.reset(index(home));
  if (there.none()) return;
  for (const DeviceId to : problem_.devices()) {
    if (there[index(to)]) load_ns_[to] += sign * flow_.value(value).crossing_ns;
  }
}

void Loads::move(UnitId unit, DeviceId to) {
  std::vector<ValueId> touched;
  for (const NodeId node : nodes_[unit]) {
    for (const ValueId value : flow_.read(node)) touched.push_back(value);
    for (const ValueId value : flow_.made(node)) touched.push_back(value);
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const ValueId value : touched) receive(value, -1);
  const DeviceId from = std::exchange(placement_[unit], to);
  for (const ValueId value : touched) receive(value, +1);
  for (const OpId op : problem_.ops(unit)) {
    load_ns_[from] -= problem_.duration_ns(op, from);
    load_ns_[to] += problem_.duration_ns(op, to);
  }
}

}  // namespace pardnn
