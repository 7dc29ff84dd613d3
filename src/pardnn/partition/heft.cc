// Row `heft`: ops by the longest path behind them, each to where it would finish first.
//
// As published, with two additions. Transfers take their channels, in gaps like the ops: ops are
// not placed in the order in which they will start, so appending to what a channel was given
// already would make early transfers wait for late ones. And units are placed whole.
// O((ops + edges) * devices * log ops).
#include "pardnn/partition/heft.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "pardnn/partition/edges.h"
#include "pardnn/partition/idle_gaps.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/times.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

constexpr std::int64_t kNever = kMaxQuantity;

class Heft {
 public:
  explicit Heft(const Problem& problem)
      : problem_(problem),
        graph_(problem.graph()),
        times_(problem),
        start_ns_(graph_.ops().size(), 0),
        finish_ns_(graph_.ops().size(), 0),
        placement_(problem.units().size(), DeviceId{}),
        unit_placed_(problem.units().size(), 0),
        devices_(problem.device_count()),
        channels_(problem.machine().channels.size()),
        arrival_ns_(graph_.tensors().size() * problem.device_count(), kNotSent) {}

  Proposal run() {
    const Table<OpId, std::int64_t> rank = bottom_levels(problem_, times_);
    std::vector<OpId> by_rank = id_order(graph_);
    // Ranks fall along every edge, but for sums beyond all bounds: there ids do it.
    std::sort(by_rank.begin(), by_rank.end(),
              [&](OpId a, OpId b) { return std::pair(-rank[a], a) < std::pair(-rank[b], b); });
    for (const OpId op : by_rank) place(op);
    Table<DeviceId, std::int64_t> bytes(problem_.device_count(), 0);
    for (const UnitId unit : problem_.units()) {
      if (problem_.ops(unit).empty()) continue;
      std::int64_t& sum = bytes[placement_[unit]];
      sum = saturating_add(sum, bytes_of(problem_, unit));
    }
    place_idle_units(problem_, std::move(bytes), placement_);
    return {std::move(placement_), order_by(graph_, start_ns_)};
  }

 private:
  static constexpr std::int64_t kNotSent = -1;

  struct Slot {
    std::int64_t finish_ns = 0, start_ns = 0;
  };

  void place(OpId op) {
    const UnitId unit = *problem_.unit(op);
    DeviceId device = placement_[unit];
    std::optional<Slot> best;
    for (const DeviceId candidate : problem_.devices()) {
      if (unit_placed_[unit] ? candidate != device : !problem_.is_allowed(unit, candidate)) {
        continue;
      }
      const Slot slot = earliest_slot(op, candidate);
      if (best.has_value() && slot.finish_ns >= best->finish_ns) continue;
      best = slot;
      device = candidate;
    }
    unit_placed_[unit] = 1;
    placement_[unit] = device;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      send(producer, tensor, device);
    });
    start_ns_[op] = best->start_ns;
    finish_ns_[op] = best->finish_ns;
    if (best->start_ns < kNever) {
      devices_[device].take(best->start_ns, problem_.duration_ns(op, device));
    }
  }

  Slot earliest_slot(OpId op, DeviceId device) const {
    std::int64_t ready_ns = 0;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      ready_ns = std::max(ready_ns, arrival_ns(producer, tensor, device));
    });
    const std::int64_t duration_ns = problem_.duration_ns(op, device);
    const std::int64_t start_ns = devices_[device].first_fit(ready_ns, duration_ns);
    return {.finish_ns = saturating_add(start_ns, duration_ns), .start_ns = start_ns};
  }

  std::int64_t arrival_ns(OpId producer, std::optional<TensorId> tensor, DeviceId to) const {
    const DeviceId from = placement_[*problem_.unit(producer)];
    if (from == to) return finish_ns_[producer];
    if (tensor.has_value() && sent(*tensor, to) != kNotSent) return sent(*tensor, to);
    if (!problem_.has_link(from, to)) return kNever;
    const std::int64_t busy_ns = times_.busy_ns(tensor, from, to);
    const std::int64_t start_ns = transfer_start_ns(finish_ns_[producer], busy_ns, from, to);
    return saturating_add(saturating_add(start_ns, busy_ns), problem_.link(from, to).latency_ns);
  }

  // When all channels of the link are free for so long.
  std::int64_t transfer_start_ns(std::int64_t at_ns, std::int64_t busy_ns, DeviceId from,
                                 DeviceId to) const {
    if (!problem_.rules().contention) return at_ns;
    for (std::int64_t before_ns = -1; before_ns != at_ns;) {
      before_ns = at_ns;
      for (const ChannelId channel : problem_.link(from, to).channels) {
        at_ns = channels_[channel].first_fit(at_ns, busy_ns);
      }
    }
    return at_ns;
  }

  void send(OpId producer, std::optional<TensorId> tensor, DeviceId to) {
    const DeviceId from = placement_[*problem_.unit(producer)];
    if (from == to || !problem_.has_link(from, to)) return;
    if (tensor.has_value()) {
      if (sent(*tensor, to) != kNotSent) return;
      sent(*tensor, to) = arrival_ns(producer, tensor, to);
    }
    if (!problem_.rules().contention) return;
    const std::int64_t busy_ns = times_.busy_ns(tensor, from, to);
    const std::int64_t start_ns = transfer_start_ns(finish_ns_[producer], busy_ns, from, to);
    if (start_ns >= kNever) return;
    for (const ChannelId channel : problem_.link(from, to).channels) {
      channels_[channel].take(start_ns, busy_ns);
    }
  }

  std::int64_t& sent(TensorId tensor, DeviceId to) {
    return arrival_ns_[index(tensor) * problem_.device_count() + index(to)];
  }
  std::int64_t sent(TensorId tensor, DeviceId to) const {
    return arrival_ns_[index(tensor) * problem_.device_count() + index(to)];
  }

  const Problem& problem_;
  const Graph& graph_;
  const Times times_;
  Table<OpId, std::int64_t> start_ns_, finish_ns_;
  UnitPlacement placement_;
  Table<UnitId, char> unit_placed_;
  Table<DeviceId, IdleGaps> devices_;
  Table<ChannelId, IdleGaps> channels_;
  std::vector<std::int64_t> arrival_ns_;  // tensors x devices
};

}  // namespace

Proposal heft(const Problem& problem, const Run&) { return Heft(problem).run(); }

}  // namespace pardnn
