// AnyTiming: the any-timing peak, a bound on memory that no timing of the same sequences can pass
// (rule E1 of docs/model.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "pardnn/plan/plan.h"
#include "pardnn/sim/lifetimes.h"

namespace pardnn {

// Time is replaced by order: a buffer counts at those moments of its device's sequence at which it
// can exist. The moments are 2n + 1, while the op at position n runs, and 2n, the gap before it, in
// which the device may wait: copies can come then, and what has been sent need not have arrived
// before the op starts. What comes before or after what follows from edges and sequences together,
// which two sweeps over all ops carry along for kLanes devices at once: the last op of a device
// that an op depends on, and the first op of a device that depends on it. O((ops + edges) *
// devices), in ceil(devices / kLanes) sweeps each way.
class AnyTiming {
 public:
  // Keeps the references. Not for Dispatch::kFifo: it has no fixed sequence.
  AnyTiming(const Problem& problem, const Schedule& schedule, const Lifetimes& lifetimes);
  // Writes any_timing_bytes only.
  void compute(Table<DeviceId, Peak>& peaks);

 private:
  static constexpr std::uint32_t kLanes = 8;
  using Lanes = std::array<std::uint32_t, kLanes>;  // a position of each of kLanes devices

  static std::uint32_t at_gap_before(std::uint32_t position) { return 2 * position; }
  static std::uint32_t at_start(std::uint32_t position) { return 2 * position + 1; }

  void sweep_forward(std::uint32_t first_device);
  void sweep_backward(std::uint32_t first_device);
  void read_forward(std::uint32_t first_device);
  void read_backward(std::uint32_t first_device);
  void add(BufferId buffer, DeviceId device);
  bool is_passed_on(BufferId buffer) const;
  template <class Visit>
  void for_each_predecessor(OpId op, Visit visit) const;

  const Problem& problem_;
  const Graph& graph_;
  const Schedule& schedule_;
  const Lifetimes& lifetimes_;
  Table<OpId, Lanes> reach_;
  Table<BufferId, std::uint32_t> first_;    // the moment from which it can exist
  Table<BufferId, std::uint32_t> sent_by_;  // the moment at which its transfers have arrived
  Table<DeviceId, std::vector<std::int64_t>> changes_;  // bytes, by moment
};

}  // namespace pardnn
