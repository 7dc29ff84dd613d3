#include "pardnn/plan/one_device.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace pardnn {

std::int64_t OneDevice::ns(std::span<const Job> by_head) {
  waiting_.clear();
  std::int64_t now_ns = 0, end_ns = 0;
  for (std::size_t next = 0; next < by_head.size() || !waiting_.empty();) {
    if (waiting_.empty()) now_ns = std::max(now_ns, by_head[next].head_ns);
    for (; next < by_head.size() && by_head[next].head_ns <= now_ns; ++next) {
      waiting_.emplace_back(by_head[next].tail_ns, by_head[next].least_ns);
      std::push_heap(waiting_.begin(), waiting_.end());
    }
    const std::int64_t until_ns =
        next < by_head.size() ? by_head[next].head_ns : std::numeric_limits<std::int64_t>::max();
    std::pop_heap(waiting_.begin(), waiting_.end());
    auto& [tail_ns, left_ns] = waiting_.back();
    const std::int64_t run_ns = std::min(left_ns, until_ns - now_ns);
    now_ns += run_ns;
    left_ns -= run_ns;
    if (left_ns == 0) {
      end_ns = std::max(end_ns, now_ns + tail_ns);
      waiting_.pop_back();
    } else {
      std::push_heap(waiting_.begin(), waiting_.end());
    }
  }
  return end_ns;
}

}  // namespace pardnn
