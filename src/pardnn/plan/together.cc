#include "pardnn/plan/together.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace pardnn {

// Of the neighbours with the greatest keys.
std::int64_t Together::done_ns(const std::vector<Neighbour>& by_head, std::size_t count) {
  jobs_.clear();
  for (std::size_t n = 0; n < by_head.size(); ++n) {
    if (rank_[n] < count) jobs_.push_back(by_head[n].job);
  }
  return device_.ns(jobs_);
}

// S rises and keys fall, so the least maximum lies where they cross: at the first j whose S is not
// below the next key, or just before it.
std::int64_t Together::or_apart_ns(std::vector<Neighbour>& neighbours) {
  const std::size_t size = neighbours.size();
  std::sort(neighbours.begin(), neighbours.end(), [](const Neighbour& a, const Neighbour& b) {
    return std::tie(a.job.head_ns, a.job.least_ns, a.job.tail_ns, a.key_ns) <
           std::tie(b.job.head_ns, b.job.least_ns, b.job.tail_ns, b.key_ns);
  });
  by_key_.resize(size);
  rank_.resize(size);
  std::iota(by_key_.begin(), by_key_.end(), 0);
  std::sort(by_key_.begin(), by_key_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return neighbours[a].key_ns != neighbours[b].key_ns
               ? neighbours[a].key_ns > neighbours[b].key_ns
               : a < b;
  });
  for (std::uint32_t n = 0; n < size; ++n) rank_[by_key_[n]] = n;
  const auto key_ns = [&](std::size_t n) { return neighbours[by_key_[n]].key_ns; };
  std::size_t low = 0;
  while (low < size && key_ns(low) == kCertain) ++low;
  const std::size_t certain = low;
  for (std::size_t high = size; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (done_ns(neighbours, middle) >= key_ns(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const std::int64_t ns = done_ns(neighbours, low);
  return low == certain ? ns : std::min(ns, key_ns(low - 1));
}

}  // namespace pardnn
