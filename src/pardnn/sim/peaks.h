// PeakSweep: the most bytes that each device holds at one moment (rules M5, M7 and N1).
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/plan/plan.h"
#include "pardnn/sim/lifetimes.h"

namespace pardnn {

// Memory only grows when an op or a copy starts. Ops start in sequence and most buffers end with
// one, so only copies and ends by an arrival have to be sorted. O(ops + tensors), and that sort.
class PeakSweep {
 public:
  // Keeps the references.
  PeakSweep(const Problem& problem, const Schedule& schedule, const Lifetimes& lifetimes);
  void compute(Table<DeviceId, Peak>& peaks);

 private:
  struct Change {
    std::int64_t at_ns;
    std::int64_t bytes;
    friend auto operator<=>(const Change&, const Change&) = default;
  };

  void collect();
  void add_end(BufferId buffer, DeviceId device);
  Peak sweep(DeviceId device) const;

  const Problem& problem_;
  const Schedule& schedule_;
  const Lifetimes& lifetimes_;
  Table<OpId, std::int64_t> taken_at_start_, freed_at_finish_;  // bytes; workspace in both
  Table<DeviceId, std::vector<Change>> copies_, freed_later_;   // by time
};

}  // namespace pardnn
