#include "pardnn/problem/allowed.h"

#include "pardnn/base/error.h"
#include "pardnn/base/text.h"

namespace pardnn {

AllowedDevices::AllowedDevices(const Graph& graph, const Machine& machine,
                               const std::vector<std::optional<KindId>>& columns,
                               const Table<DeviceId, std::uint32_t>& column_of)
    : graph_(graph), machine_(machine), columns_(columns), devices_of_column_(columns.size()) {
  for (DeviceId device : machine.devices.ids()) {
    devices_of_column_[column_of[device]].set(index(device));
    all_.set(index(device));
  }
}

DeviceSet AllowedDevices::named(const std::string& name, const std::string& whose) const {
  DeviceSet set;
  if (const auto device = machine_.find(name)) return set.set(index(*device));
  for (DeviceId device : machine_.devices.ids()) {
    if (machine_.devices[device].kind == name) set.set(index(device));
  }
  if (set.none() && !graph_.find_kind(name)) {
    std::string names;
    for (const Device& device : machine_.devices) {
      names += (names.empty() ? "" : ", ") + device.name + " (" + device.kind + ")";
    }
    throw Error(whose + " is pinned to " + name + ": found no device and no kind of that name, " +
                "expected one of " + names);
  }
  return set;
}

void AllowedDevices::apply_pins(const Pins& pins, const std::string& whose, Reasons& reasons,
                                DeviceSet& left) const {
  if (pins.empty()) return;
  DeviceSet allowed = pins.on.empty() ? all_ : DeviceSet();
  std::string text = whose + " has";
  for (std::size_t i = 0; i < pins.on.size(); ++i) {
    allowed |= named(pins.on[i], whose);
    text += (i == 0 ? " on=" : ",") + pins.on[i];
  }
  for (std::size_t i = 0; i < pins.avoid.size(); ++i) {
    allowed &= ~named(pins.avoid[i], whose);
    text += (i == 0 ? " not=" : ",") + pins.avoid[i];
  }
  if ((left & ~allowed).any()) reasons.push_back(std::move(text));
  left &= allowed;
}

void AllowedDevices::apply_costs(OpId op, Reasons& reasons, DeviceSet& left) const {
  DeviceSet forbidden;
  std::string kinds;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (columns_[column] && graph_.cost(op, *columns_[column]).is_allowed()) continue;
    const DeviceSet devices = devices_of_column_[column];
    if ((left & devices).none()) continue;
    forbidden |= devices;
    for (DeviceId device : machine_.devices.ids()) {
      if (!devices[index(device)]) continue;
      kinds += (kinds.empty() ? "" : ", ") + machine_.devices[device].kind;
      break;
    }
  }
  if (forbidden.none()) return;
  reasons.push_back("op " + quoted(graph_.key(op)) + " has no cost for kind " + kinds);
  left &= ~forbidden;
}

DeviceSet AllowedDevices::of_unit(std::span<const OpId> ops,
                                  std::span<const VariableId> variables) {
  DeviceSet left = all_;
  Reasons reasons;
  const auto group = ops.empty() ? graph_.group(variables.front()) : graph_.group(ops.front());
  if (group) {
    apply_pins(graph_.pins(*group), "group " + quoted(graph_.name(*group)), reasons, left);
  }
  for (VariableId variable : variables) {
    const Pins& pins = graph_.pins(variable);
    if (!pins.empty()) {
      apply_pins(pins, "variable " + quoted(graph_.key(variable)), reasons, left);
    }
  }
  for (OpId op : ops) {
    const Pins& pins = graph_.pins(op);
    if (!pins.empty()) apply_pins(pins, "op " + quoted(graph_.key(op)), reasons, left);
    apply_costs(op, reasons, left);
  }
  if (left.any()) return left;

  std::string unit = group ? "group " + quoted(graph_.name(*group))
                           : (ops.empty() ? "variable " + quoted(graph_.key(variables.front()))
                                          : "op " + quoted(graph_.key(ops.front())));
  std::string all_reasons;
  for (const std::string& reason : reasons) {
    all_reasons += (all_reasons.empty() ? "" : "; ") + reason;
  }
  throw Error(unit + ": found no device where it may be placed (" + all_reasons +
              "), expected pins and costs that leave one");
}

}  // namespace pardnn
