// Memory over time: how much a device holds at every moment, and what it holds then.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pardnn/sim/simulate.h"

namespace pardnn {

// From this moment on, until the next step of the list.
struct MemoryStep {
  std::int64_t at_ns = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const MemoryStep&, const MemoryStep&) = default;
};

// `buffers` as Simulator::lifetimes answers them. One step for each moment at which the sum
// changes, ascending; the first is at 0, and its bytes are what the device holds from the
// beginning.
std::vector<MemoryStep> memory_steps(std::span<const Buffer> buffers, DeviceId device);

// The buffers of the device that exist at `at_ns`, the largest first, ties as in `buffers`. In a
// step without ops those that last all step.
std::vector<Buffer> holders(std::span<const Buffer> buffers, DeviceId device, std::int64_t at_ns);

}  // namespace pardnn
