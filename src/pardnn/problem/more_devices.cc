#include "pardnn/problem/more_devices.h"

#include <algorithm>
#include <string>

#include "pardnn/base/ids.h"

namespace pardnn {
namespace {

constexpr Link kUsualLink{
    .bytes_per_second = 12'000'000'000, .overhead_ns = 5'000, .latency_ns = 5'000, .channels = {}};

class Growing {
 public:
  explicit Growing(const Machine& machine)
      : small_(machine),
        machine_(machine),
        last_{static_cast<std::uint32_t>(machine.devices.size() - 1)},
        links_on_(machine.channels.size(), 0) {
    for (const auto& link : machine.links) {
      if (!link) continue;
      for (const ChannelId channel : link->channels) ++links_on_[channel];
    }
  }

  Machine grow(std::size_t more) {
    for (std::size_t n = 0; n < more; ++n) add_device();
    machine_.links.clear();
    for (const DeviceId from : machine_.devices.ids()) {
      for (const DeviceId to : machine_.devices.ids()) machine_.links.push_back(link(from, to));
    }
    machine_.validate();
    return std::move(machine_);
  }

 private:
  bool is_new(DeviceId device) const { return device > last_; }

  // The name of the last device with the next number that is free.
  void add_device() {
    Device device = small_.devices[last_];
    const std::string stem = device.name.substr(0, device.name.find_last_not_of("0123456789") + 1);
    std::size_t number = machine_.devices.size();
    while (machine_.find(stem + std::to_string(number))) ++number;
    device.name = stem + std::to_string(number);
    device.address.clear();
    machine_.devices.push(std::move(device));
  }

  std::optional<Link> link(DeviceId from, DeviceId to) {
    if (from == to) return std::nullopt;
    const DeviceId from_like = std::min(from, last_), to_like = std::min(to, last_);
    const bool among_twins = from_like == to_like;
    std::optional<Link> link = among_twins ? link_of_last() : small_.link(from_like, to_like);
    if (!link || (!is_new(from) && !is_new(to))) return link;
    const std::string name = machine_.devices[from].name + "->" + machine_.devices[to].name;
    if (among_twins) {
      link->channels = {machine_.channels.push(name)};
      return link;
    }
    for (ChannelId& channel : link->channels) {
      if (links_on_[channel] == 1) channel = machine_.channels.push(name);
    }
    std::ranges::sort(link->channels);
    return link;
  }

  std::optional<Link> link_of_last() const {
    if (small_.devices.size() == 1) return kUsualLink;
    for (const DeviceId other : small_.devices.ids()) {
      if (const auto& link = small_.link(other, last_)) return link;
    }
    return std::nullopt;
  }

  const Machine& small_;
  Machine machine_;
  const DeviceId last_;
  Table<ChannelId, int> links_on_;
};

}  // namespace

Machine with_more_devices(const Machine& machine, std::size_t more) {
  return Growing(machine).grow(more);
}

}  // namespace pardnn
