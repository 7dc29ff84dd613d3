// Groups, step 1c of ParDNN: from devices of nodes to devices of units.
#include "pardnn/partition/groups.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

class Grouping {
 public:
  Grouping(const Problem& problem, const Flow& flow, const PrimaryOfNode& primary_of,
           const DeviceOfPrimary& devices)
      : problem_(problem),
        flow_(flow),
        device_(flow.nodes().size()),
        unit_(flow.nodes().size()),
        nodes_(problem.units().size()),
        pull_ns_(problem.device_count(), 0) {
    for (const NodeId node : flow.nodes()) {
      device_[node] = devices[primary_of[node]];
      unit_[node] = *problem.unit(flow.ops(node).front());
      nodes_[unit_[node]].push_back(node);
    }
  }

  UnitPlacement run() {
    UnitPlacement placement(problem_.units().size(), DeviceId{});
    Table<DeviceId, std::int64_t> bytes(problem_.device_count(), 0);
    for (const UnitId unit : problem_.units()) {
      if (nodes_[unit].empty()) continue;
      placement[unit] = settled(unit) ? device_[nodes_[unit].front()] : decide(unit);
      for (const NodeId node : nodes_[unit]) device_[node] = placement[unit];
      std::int64_t& sum = bytes[placement[unit]];
      sum = saturating_add(sum, bytes_of(problem_, unit));
    }
    place_idle_units(problem_, std::move(bytes), placement);
    return placement;
  }

 private:
  bool settled(UnitId unit) const {
    const DeviceId device = device_[nodes_[unit].front()];
    return problem_.is_allowed(unit, device) &&
           std::all_of(nodes_[unit].begin(), nodes_[unit].end(),
                       [&](NodeId node) { return device_[node] == device; });
  }

  DeviceId decide(UnitId unit) {
    std::fill(pull_ns_.begin(), pull_ns_.end(), 0);
    const auto pull = [&](DeviceId device, std::int64_t ns) {
      pull_ns_[device] = saturating_add(pull_ns_[device], ns);
    };
    std::vector<ValueId> read;
    for (const NodeId node : nodes_[unit]) {
      pull(device_[node], flow_.time_ns(node));
      for (const ValueId value : flow_.read(node)) read.push_back(value);
      for (const ValueId value : flow_.made(node)) {
        DeviceSet there;
        for (const NodeId reader : flow_.readers(value)) {
          if (unit_[reader] != unit) there.set(index(device_[reader]));
        }
        for (const DeviceId device : problem_.devices()) {
          if (there[index(device)]) pull(device, flow_.value(value).crossing_ns);
        }
      }
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const ValueId value : read) {
      const NodeId maker = flow_.value(value).maker;
      if (unit_[maker] != unit) pull(device_[maker], flow_.value(value).crossing_ns);
    }
    std::optional<DeviceId> best;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.is_allowed(unit, device)) continue;
      if (!best || pull_ns_[device] > pull_ns_[*best]) best = device;
    }
    return *best;
  }

  const Problem& problem_;
  const Flow& flow_;
  Table<NodeId, DeviceId> device_;
  Table<NodeId, UnitId> unit_;
  Table<UnitId, std::vector<NodeId>> nodes_;
  Table<DeviceId, std::int64_t> pull_ns_;
};

}  // namespace

UnitPlacement place_groups(const Problem& problem, const Flow& flow,
                           const PrimaryOfNode& primary_of, const DeviceOfPrimary& devices) {
  return Grouping(problem, flow, primary_of, devices).run();
}

}  // namespace pardnn
