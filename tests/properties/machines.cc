#include "tests/properties/machines.h"

#include <algorithm>
#include <string>
#include <vector>

namespace pardnn::properties {

Machine even_machine(std::size_t devices, std::int64_t capacity_bytes) {
  return Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(devices, capacity_bytes),
                           .overhead_ns = 5'000,
                           .latency_ns = 5'000});
}

Machine uneven_machine(std::size_t devices, std::int64_t capacity_bytes,
                       std::int64_t granularity_bytes, bool is_slow) {
  Machine machine;
  machine.granularity_bytes = granularity_bytes;
  std::vector<ChannelId> ports;
  for (std::size_t n = 0; n < devices; ++n) {
    const auto number = static_cast<std::int64_t>(n);
    Device device;
    device.name = "d" + std::to_string(n);
    device.kind = n % 2 == 0 ? "gpu" : "cpu";
    device.capacity_bytes = capacity_bytes + capacity_bytes / 8 * (number % 3);
    device.reserve_bytes = std::min(capacity_bytes / 50 * (number % 2) + 3, capacity_bytes);
    machine.devices.push(device);
    ports.push_back(machine.channels.push(device.name + " out"));
  }
  const ChannelId link_to_other_half = machine.channels.push("switch");
  machine.links.resize(devices * devices);
  for (std::size_t from = 0; from < devices; ++from) {
    for (std::size_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      Link link;
      const bool is_far = (from < devices / 2) != (to < devices / 2);
      const std::int64_t rate = is_far ? 3 : from % 2 == 0 ? 12 : 50;
      link.bytes_per_second = is_slow ? rate * 100'000'000 + 7 : rate * 1'000'000'000 + 7;
      link.overhead_ns = is_slow ? rate % 7 : 1'000 * rate;
      link.latency_ns = is_far ? (is_slow ? 9 : 9'000) : 0;
      if (is_far) {
        link.channels = {ports[from], link_to_other_half};
      } else if (from % 2 == 0) {
        link.channels = {ports[from]};
      } else {
        link.channels = {machine.channels.push(machine.devices[DeviceId{std::uint32_t(from)}].name +
                                               ">" + std::to_string(to))};
      }
      machine.links[from * devices + to] = link;
    }
  }
  machine.validate();
  return machine;
}

}  // namespace pardnn::properties
