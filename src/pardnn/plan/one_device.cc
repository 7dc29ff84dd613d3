#include "pardnn/plan/one_device.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace pardnn {

std::int64_t one_device_ns(std::vector<Job>& jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const Job& a, const Job& b) { return a.head_ns < b.head_ns; });
  std::vector<std::pair<std::int64_t, std::int64_t>> waiting;  // heap: tail, time left
  std::int64_t now_ns = 0, end_ns = 0;
  for (std::size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now_ns = std::max(now_ns, jobs[next].head_ns);
    for (; next < jobs.size() && jobs[next].head_ns <= now_ns; ++next) {
      waiting.emplace_back(jobs[next].tail_ns, jobs[next].least_ns);
      std::push_heap(waiting.begin(), waiting.end());
    }
    const std::int64_t until_ns =
        next < jobs.size() ? jobs[next].head_ns : std::numeric_limits<std::int64_t>::max();
    std::pop_heap(waiting.begin(), waiting.end());
    auto& [tail_ns, left_ns] = waiting.back();
    const std::int64_t run_ns = std::min(left_ns, until_ns - now_ns);
    now_ns += run_ns;
    left_ns -= run_ns;
    if (left_ns == 0) {
      end_ns = std::max(end_ns, now_ns + tail_ns);
      waiting.pop_back();
    } else {
      std::push_heap(waiting.begin(), waiting.end());
    }
  }
  return end_ns;
}

}  // namespace pardnn
