#include "pardnn/sim/memory_profile.h"

#include <algorithm>
#include <utility>

namespace pardnn {
namespace {

std::span<const Buffer> of_device(std::span<const Buffer> buffers, DeviceId device) {
  const auto first = std::ranges::lower_bound(buffers, device, {}, &Buffer::device);
  const auto last = std::ranges::upper_bound(buffers, device, {}, &Buffer::device);
  return {first, last};
}

}  // namespace

std::vector<MemoryStep> memory_steps(std::span<const Buffer> buffers, DeviceId device) {
  std::vector<MemoryStep> changes;
  for (const Buffer& buffer : of_device(buffers, device)) {
    changes.push_back({buffer.begin_ns, buffer.bytes});
    if (buffer.end_ns > buffer.begin_ns) changes.push_back({buffer.end_ns, -buffer.bytes});
  }
  std::ranges::sort(changes, {}, &MemoryStep::at_ns);
  std::vector<MemoryStep> steps = {{0, 0}};
  std::int64_t used = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    used += changes[i].bytes;
    // Half-open lifetimes: only the sum of all changes at one instant is ever held (rule N1).
    if (i + 1 < changes.size() && changes[i + 1].at_ns == changes[i].at_ns) continue;
    if (used == steps.back().bytes) continue;
    if (changes[i].at_ns == 0) {
      steps.back().bytes = used;
    } else {
      steps.push_back({changes[i].at_ns, used});
    }
  }
  return steps;
}

std::vector<Buffer> holders(std::span<const Buffer> buffers, DeviceId device, std::int64_t at_ns) {
  std::vector<Buffer> held;
  for (const Buffer& buffer : of_device(buffers, device)) {
    const bool is_all_of_empty_step = buffer.begin_ns == buffer.end_ns;
    if (buffer.begin_ns <= at_ns && (at_ns < buffer.end_ns || is_all_of_empty_step)) {
      held.push_back(buffer);
    }
  }
  std::ranges::stable_sort(held, std::greater<>(), &Buffer::bytes);
  return held;
}

}  // namespace pardnn
