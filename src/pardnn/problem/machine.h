// Machine: devices with their memory, and links between them with the channels they occupy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/base/ids.h"
#include "pardnn/base/table.h"

namespace pardnn {

inline constexpr std::size_t kMaxDevices = 128;

struct Device {
  std::string name;  // unique in the machine
  std::string kind;  // a column of the graph's costs
  std::int64_t capacity_bytes = 0;
  std::int64_t reserve_bytes = 0;  // set aside by the machine file, always in use (rule M6)
  std::string address;             // host:port for an engine that connects; empty otherwise
};

// A directed pair of devices (rules T2, T5).
struct Link {
  std::int64_t bytes_per_second = 0;  // > 0
  std::int64_t overhead_ns = 0;       // held on the channels before the bytes
  std::int64_t latency_ns = 0;        // after the channels are free again
  std::vector<ChannelId> channels;    // at least one, ascending

  // Whether every tensor takes as long on the other, channels aside.
  bool costs_like(const Link& other) const {
    return bytes_per_second == other.bytes_per_second && overhead_ns == other.overhead_ns &&
           latency_ns == other.latency_ns;
  }
};

struct Machine {
  std::string name;
  Table<DeviceId, Device> devices;
  Table<ChannelId, std::string> channels;
  std::vector<std::optional<Link>> links;  // devices x devices, from major; none: not allowed
  std::int64_t granularity_bytes = 1;      // buffers are rounded up to it (rule N4)

  const std::optional<Link>& link(DeviceId from, DeviceId to) const {
    return links[index(from) * devices.size() + index(to)];
  }
  std::optional<DeviceId> find(std::string_view device_name) const;

  // What the command line states: equal links, one channel per ordered pair, devices d0, d1, …
  struct Uniform {
    std::vector<std::int64_t> capacity_bytes;  // one per device
    std::string kind = "any";
    std::int64_t bytes_per_second = 12'000'000'000;
    std::int64_t overhead_ns = 0, latency_ns = 0;
    std::int64_t granularity_bytes = 1, reserve_bytes = 0;
  };
  static Machine uniform(const Uniform& options);

  // Throws Error naming what is wrong (no device, a name twice, a rate of 0, too many devices).
  void validate() const;
};

}  // namespace pardnn
