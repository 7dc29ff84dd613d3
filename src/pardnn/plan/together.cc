#include "pardnn/plan/together.h"

#include <algorithm>
#include <cstddef>

namespace pardnn {

// S rises and keys fall, so the least maximum lies where they cross: at the first j whose S is not
// below the next key, or just before it.
std::int64_t together_or_apart_ns(std::vector<Neighbour>& neighbours) {
  std::stable_sort(neighbours.begin(), neighbours.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.key_ns > b.key_ns; });
  std::vector<Job> jobs;
  const auto together_ns = [&](std::size_t count) {
    jobs.clear();
    for (std::size_t n = 0; n < count; ++n) jobs.push_back(neighbours[n].job);
    return one_device_ns(jobs);
  };
  std::size_t low = 0;
  while (low < neighbours.size() && neighbours[low].key_ns == kCertain) ++low;
  const std::size_t certain = low;
  for (std::size_t high = neighbours.size(); low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (together_ns(middle) >= neighbours[middle].key_ns) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const std::int64_t ns = together_ns(low);
  return low == certain ? ns : std::min(ns, neighbours[low - 1].key_ns);
}

}  // namespace pardnn
