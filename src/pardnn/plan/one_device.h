// One device, many ops: the least time in which one device can be through with all of them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pardnn {

// An op as a device sees it: it cannot start before `head_ns`, and `tail_ns` must pass after it.
struct Job {
  std::int64_t head_ns = 0, least_ns = 0, tail_ns = 0;
};

// Works out bounds for one device again and again; keeps its array.
class OneDevice {
 public:
  // No order of the jobs on one device ends, the last tail included, before this moment. 0 for
  // none. Exact where a job could be interrupted: whenever a head passes, the waiting job with the
  // longest tail runs (J. R. Jackson's rule; J. Carlier, The one-machine sequencing problem,
  // European J. of Operational Research 11, 1982). The jobs must come by rising head. O(n log n).
  std::int64_t ns(std::span<const Job> by_head);

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> waiting_;  // heap: tail, time left
};

inline bool starts_before(const Job& a, const Job& b) { return a.head_ns < b.head_ns; }

}  // namespace pardnn
