#include "pardnn/problem/machine.h"

#include <set>

#include "pardnn/base/error.h"
#include "pardnn/base/integers.h"

namespace pardnn {
namespace {

[[noreturn]] void refuse(const Machine& machine, const std::string& what) {
  throw Error("machine" + (machine.name.empty() ? "" : " " + machine.name) + ": " + what);
}

void check_quantity(const Machine& machine, std::int64_t value, std::int64_t least,
                    const std::string& what) {
  if (value >= least && value <= kMaxQuantity) return;
  refuse(machine, "found " + what + " " + std::to_string(value) + ", expected at least " +
                      std::to_string(least) + " and less than 2^62");
}

void check_devices(const Machine& machine) {
  const std::size_t count = machine.devices.size();
  if (count == 0) refuse(machine, "found no device, expected at least one");
  if (count > kMaxDevices) {
    refuse(machine, "found " + std::to_string(count) + " devices, expected at most " +
                        std::to_string(kMaxDevices));
  }
  std::set<std::string_view> names;
  for (const Device& device : machine.devices) {
    if (device.name.empty()) refuse(machine, "found a device without a name");
    if (!names.insert(device.name).second) {
      refuse(machine, "found device " + device.name + " twice, expected names that differ");
    }
    if (device.kind.empty()) {
      refuse(machine, "found device " + device.name + " without a kind, expected one");
    }
    check_quantity(machine, device.capacity_bytes, 0,
                   "a capacity of device " + device.name + " of");
    check_quantity(machine, device.reserve_bytes, 0, "a reserve of device " + device.name + " of");
    if (device.reserve_bytes > device.capacity_bytes) {
      refuse(machine, "found a reserve of " + std::to_string(device.reserve_bytes) +
                          " bytes on device " + device.name + ", expected at most its capacity, " +
                          std::to_string(device.capacity_bytes));
    }
  }
}

void check_link(const Machine& machine, const Link& link, const std::string& name) {
  check_quantity(machine, link.bytes_per_second, 1, "a bandwidth of link " + name + " of");
  check_quantity(machine, link.overhead_ns, 0, "an overhead of link " + name + " of");
  check_quantity(machine, link.latency_ns, 0, "a latency of link " + name + " of");
  if (link.channels.empty()) refuse(machine, "found link " + name + " without a channel");
  for (std::size_t i = 0; i < link.channels.size(); ++i) {
    if (!machine.channels.contains(link.channels[i])) {
      refuse(machine, "found link " + name + " on a channel that the machine has not");
    }
    if (i > 0 && link.channels[i - 1] >= link.channels[i]) {
      refuse(machine, "found the channels of link " + name + " out of order or twice");
    }
  }
}

}  // namespace

std::optional<DeviceId> Machine::find(std::string_view device_name) const {
  for (DeviceId device : devices.ids()) {
    if (devices[device].name == device_name) return device;
  }
  return std::nullopt;
}

Machine Machine::uniform(const Uniform& options) {
  Machine machine;
  machine.name = "uniform";
  machine.granularity_bytes = options.granularity_bytes;
  for (std::int64_t capacity : options.capacity_bytes) {
    machine.devices.push({.name = "d" + std::to_string(machine.devices.size()),
                          .kind = options.kind,
                          .capacity_bytes = capacity,
                          .reserve_bytes = options.reserve_bytes,
                          .address = {}});
  }
  for (const Device& from : machine.devices) {
    for (const Device& to : machine.devices) {
      if (from.name == to.name) {
        machine.links.emplace_back();
        continue;
      }
      const ChannelId channel = machine.channels.push(from.name + "->" + to.name);
      machine.links.push_back(Link{.bytes_per_second = options.bytes_per_second,
                                   .overhead_ns = options.overhead_ns,
                                   .latency_ns = options.latency_ns,
                                   .channels = {channel}});
    }
  }
  machine.validate();
  return machine;
}

void Machine::validate() const {
  check_devices(*this);
  check_quantity(*this, granularity_bytes, 1, "a granularity of");
  PARDNN_CHECK(links.size() == devices.size() * devices.size());
  for (DeviceId from : devices.ids()) {
    for (DeviceId to : devices.ids()) {
      if (!link(from, to)) continue;
      const std::string link_name = devices[from].name + "->" + devices[to].name;
      if (from == to) {
        refuse(*this, "found link " + link_name + ", expected links between two devices");
      }
      check_link(*this, *link(from, to), link_name);
    }
  }
}

}  // namespace pardnn
