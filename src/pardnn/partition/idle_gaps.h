// IdleGaps: when one line of time, of a device or a channel, is free while stretches of it are
// taken in any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "pardnn/partition/times.h"

namespace pardnn {

class IdleGaps {
 public:
  // The first moment from `from_ns` on at which the line is free for `length_ns`. Of the gaps that
  // are too short only the first kMostLooks are looked at, then the end of the line is the answer:
  // a line of many small gaps must not cost their number for every op.
  std::int64_t first_fit(std::int64_t from_ns, std::int64_t length_ns) const {
    if (from_ns >= end_ns_) return from_ns;
    auto gap = gaps_.upper_bound(from_ns);
    if (gap != gaps_.begin() && std::prev(gap)->second > from_ns) --gap;
    for (int looks = 0; gap != gaps_.end() && looks < kMostLooks; ++gap, ++looks) {
      const std::int64_t start_ns = std::max(from_ns, gap->first);
      if (gap->second - start_ns >= length_ns) return start_ns;
    }
    return end_ns_;
  }

  // Takes [start_ns, start_ns + length_ns), which must be free.
  void take(std::int64_t start_ns, std::int64_t length_ns) {
    const std::int64_t stop_ns = saturating_add(start_ns, length_ns);
    if (start_ns >= end_ns_) {
      if (start_ns > end_ns_) gaps_.emplace_hint(gaps_.end(), end_ns_, start_ns);
      end_ns_ = stop_ns;
      return;
    }
    const auto gap = std::prev(gaps_.upper_bound(start_ns));
    const std::int64_t gap_stop_ns = gap->second;
    if (gap->first == start_ns) {
      gaps_.erase(gap);
    } else {
      gap->second = start_ns;
    }
    if (stop_ns < gap_stop_ns) gaps_.emplace(stop_ns, gap_stop_ns);
  }

 private:
  static constexpr int kMostLooks = 64;

  std::map<std::int64_t, std::int64_t> gaps_;  // start to end; none of them empty
  std::int64_t end_ns_ = 0;                    // free from here on
};

}  // namespace pardnn
