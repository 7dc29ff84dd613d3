// Where a unit may be placed: what its pins and the costs of its ops leave of the devices.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/graph/graph.h"
#include "pardnn/problem/machine.h"

namespace pardnn {

using DeviceSet = std::bitset<kMaxDevices>;

class AllowedDevices {
 public:
  // `columns`: the graph's kind, if any, of each of the machine's kinds; `column_of`: each
  // device's.
  AllowedDevices(const Graph& graph, const Machine& machine,
                 const std::vector<std::optional<KindId>>& columns,
                 const Table<DeviceId, std::uint32_t>& column_of);

  // Never empty: throws Error naming the pins and costs in conflict, or a name in a pin that is no
  // device and no kind.
  DeviceSet of_unit(std::span<const OpId> ops, std::span<const VariableId> variables);

 private:
  using Reasons = std::vector<std::string>;  // why some devices are out

  // The devices, or all devices of the kind, of this name; `whose` for the message.
  DeviceSet named(const std::string& name, const std::string& whose) const;
  void apply_pins(const Pins& pins, const std::string& whose, Reasons& reasons,
                  DeviceSet& left) const;
  void apply_costs(OpId op, Reasons& reasons, DeviceSet& left) const;

  const Graph& graph_;
  const Machine& machine_;
  const std::vector<std::optional<KindId>>& columns_;
  std::vector<DeviceSet> devices_of_column_;
  DeviceSet all_;
};

}  // namespace pardnn
