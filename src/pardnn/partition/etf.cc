// Row `etf`: earliest task first, list scheduling that counts transfers.
//
// Every ready op waits in a queue of each device it may run on, by the moment its inputs can be
// there. Moments are looked up again when an op is about to be taken: channels that filled up
// meanwhile only make them later. O((ops + edges) * devices * log ops).
#include "pardnn/partition/etf.h"

#include <algorithm>
#include <utility>

#include "pardnn/partition/byte_caps.h"
#include "pardnn/partition/edges.h"
#include "pardnn/partition/units.h"
#include "pardnn/partition/waiting_ops.h"

namespace pardnn {
namespace {

constexpr std::int64_t kNever = kMaxQuantity;

class EarliestTaskFirst {
 public:
  EarliestTaskFirst(const Problem& problem, const Times& times,
                    const Table<OpId, std::int64_t>& priority, const EtfOptions& options)
      : problem_(problem),
        graph_(problem.graph()),
        times_(times),
        priority_(priority),
        device_count_(problem.device_count()),
        delay_(options.delay),
        favourite_of_(options.favourite_of),
        missing_(graph_.ops().size(), 0),
        finish_ns_(graph_.ops().size(), 0),
        placed_(graph_.ops().size(), 0),
        device_(graph_.ops().size()),
        queues_(graph_.ops().size(), 0),
        unit_placed_(problem.units().size(), 0),
        lanes_(device_count_, Lane(device_count_)),
        arrival_ns_(graph_.tensors().size() * device_count_, kNotSent),
        channel_free_ns_(problem.machine().channels.size(), 0),
        there_(device_count_) {
    proposal_.placement = UnitPlacement(problem.units().size(), DeviceId{});
    if (options.bytes_per_mille.has_value()) caps_.emplace(problem, *options.bytes_per_mille);
    const Table<DeviceId, Device>& devices = problem.machine().devices;
    for (const Device& device : devices) uniform_ &= device.kind == devices.begin()->kind;
    if (options.placed != nullptr) put_first(*options.placed);
  }

  Proposal run() {
    std::size_t left = 0;
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      ++left;
      for_each_reader(graph_, op,
                      [&](OpId reader, std::optional<TensorId>) { ++missing_[reader]; });
    }
    proposal_.order.reserve(left);
    for (const OpId op : graph_.ops()) {
      if (!graph_.is_every(op) && missing_[op] == 0) make_ready(op);
    }
    while (proposal_.order.size() < left) place_next();
    place_variables();
    sort_by_start();
    return std::move(proposal_);
  }

 private:
  static constexpr std::int64_t kNotSent = -1;

  struct Lane {
    explicit Lane(std::size_t device_count) : waiting(device_count) {}

    WaitingOps waiting;
    std::int64_t free_ns = 0;
    std::optional<OpId> last;
  };

  void put_first(const PlacedUnits& placed) {
    for (const UnitId unit : problem_.units()) {
      if (!placed[unit].has_value()) continue;
      unit_placed_[unit] = 1;
      proposal_.placement[unit] = *placed[unit];
      if (caps_.has_value()) caps_->give(unit, *placed[unit]);
    }
  }

  // How much longer than on its fastest device the op takes on this one.
  std::int64_t penalty_ns(OpId op, DeviceId device) const {
    if (uniform_) return 0;
    const UnitId unit = *problem_.unit(op);
    std::int64_t least = kNever;
    for (const DeviceId other : problem_.devices()) {
      if (problem_.is_allowed(unit, other)) {
        least = std::min(least, problem_.duration_ns(op, other));
      }
    }
    return problem_.duration_ns(op, device) - least;
  }

  // Whether the op is no longer to be had on this device. The last queue that holds it keeps it.
  bool gone(OpId op, DeviceId device) {
    const UnitId unit = *problem_.unit(op);
    if (placed_[op]) return true;
    if (unit_placed_[unit]) return proposal_.placement[unit] != device;
    if (!caps_.has_value() || queues_[op] == 1 || caps_->goes_to(unit, device)) return false;
    --queues_[op];
    return true;
  }

  void make_ready(OpId op) {
    if (favourite_of_ != nullptr && (*favourite_of_)[op].has_value()) favourites_.push_back(op);
    const UnitId unit = *problem_.unit(op);
    if (unit_placed_[unit]) {
      const DeviceId device = proposal_.placement[unit];
      enqueue(op, device, inputs_there(op, device));
      queues_[op] = 1;
      return;
    }
    std::fill(there_.begin(), there_.end(), InputsThere{});
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      for (const DeviceId device : problem_.devices()) {
        look_at(producer, tensor, device, there_[device]);
      }
    });
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.is_allowed(unit, device)) continue;
      enqueue(op, device, there_[device]);
      ++queues_[op];
    }
  }

  void enqueue(OpId op, DeviceId device, const InputsThere& there) {
    Lane& lane = lanes_[device];
    lane.waiting.add(op, priority_[op], there, penalty_ns(op, device), lane.free_ns);
  }

  InputsThere inputs_there(OpId op, DeviceId device) const {
    InputsThere there;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      look_at(producer, tensor, device, there);
    });
    return there;
  }

  // The arrival, or for what would have to be sent first the arrival and the delay asked for.
  void look_at(OpId producer, std::optional<TensorId> tensor, DeviceId to,
               InputsThere& last) const {
    const DeviceId from = device_[producer];
    const auto is_there = [&](std::int64_t at_ns) {
      if (at_ns > last.at_ns) last = {.at_ns = at_ns};
    };
    if (from == to) return is_there(finish_ns_[producer]);
    if (tensor.has_value()) {
      const std::int64_t known_ns = arrival_ns_[index(*tensor) * device_count_ + index(to)];
      if (known_ns != kNotSent) return is_there(known_ns);
    }
    if (!problem_.has_link(from, to)) return is_there(kNever);
    const std::int64_t crossing_ns =
        times_.busy_ns(tensor, from, to) + problem_.link(from, to).latency_ns;
    std::int64_t after_free_ns = crossing_ns;
    for (std::int64_t n = 0; n < delay_; ++n) {
      after_free_ns = saturating_add(after_free_ns, crossing_ns);
    }
    const std::int64_t free_ns = channels_free_ns(finish_ns_[producer], from, to);
    const std::int64_t at_ns = saturating_add(free_ns, after_free_ns);
    if (free_ns == finish_ns_[producer] || at_ns == kNever) return is_there(at_ns);
    if (at_ns > last.at_ns) last = {at_ns, from, after_free_ns};
  }

  std::int64_t channels_free_ns(std::int64_t at_ns, DeviceId from, DeviceId to) const {
    if (!problem_.rules().contention) return at_ns;
    for (const ChannelId channel : problem_.link(from, to).channels) {
      at_ns = std::max(at_ns, channel_free_ns_[channel]);
    }
    return at_ns;
  }

  void send(OpId producer, std::optional<TensorId> tensor, DeviceId to) {
    const DeviceId from = device_[producer];
    if (from == to || !problem_.has_link(from, to)) return;
    const std::int64_t end_ns =
        channels_free_ns(finish_ns_[producer], from, to) + times_.busy_ns(tensor, from, to);
    if (tensor.has_value()) {
      std::int64_t& known_ns = arrival_ns_[index(*tensor) * device_count_ + index(to)];
      if (known_ns != kNotSent) return;
      known_ns = end_ns + problem_.link(from, to).latency_ns;
    }
    if (!problem_.rules().contention) return;
    for (const ChannelId channel : problem_.link(from, to).channels) {
      channel_free_ns_[channel] = end_ns;
    }
    if (tensor.has_value()) tell_readers(*tensor, to);
  }

  // It was sent: what waited for the link because of it no longer does.
  void tell_readers(TensorId tensor, DeviceId to) {
    for (const OpId reader : graph_.readers(tensor)) {
      const UnitId unit = *problem_.unit(reader);
      if (missing_[reader] > 0 || placed_[reader] || !problem_.is_allowed(unit, to)) continue;
      if (unit_placed_[unit] && proposal_.placement[unit] != to) continue;
      enqueue(reader, to, inputs_there(reader, to));
      ++queues_[reader];
    }
  }

  // The moment at which this device could start its best waiting op.
  std::optional<WaitingOps::Head> head(DeviceId device) {
    Lane& lane = lanes_[device];
    return lane.waiting.head(
        lane.free_ns, [&](DeviceId from) { return channels_free_ns(0, from, device); },
        [&](OpId op) { return placed_[op] != 0; }, [&](OpId op) { return gone(op, device); });
  }

  void place_next() {
    while (true) {
      std::optional<WaitingOps::Head> best;
      DeviceId device{};
      for (const DeviceId candidate : problem_.devices()) {
        const std::optional<WaitingOps::Head> found = head(candidate);
        if (!found.has_value() || (best.has_value() && *best <= *found)) continue;
        best = found;
        device = candidate;
      }
      PARDNN_CHECK(best.has_value());
      lanes_[device].waiting.pop();
      const OpId op = best->op;
      const InputsThere there = inputs_there(op, device);
      const std::int64_t start_ns = std::max(there.at_ns, lanes_[device].free_ns);
      if (start_ns + penalty_ns(op, device) <= best->at_ns) {
        place(op, device, start_ns);
        place_favourites();
        return;
      }
      enqueue(op, device, there);
    }
  }

  // Whether the device that ran the op's parent last has kept itself for it.
  bool is_kept_for(OpId child) const {
    const Parent& parent = *(*favourite_of_)[child];
    const DeviceId device = device_[parent.op];
    const UnitId unit = *problem_.unit(child);
    if (placed_[child] || lanes_[device].last != parent.op) return false;
    if (unit_placed_[unit] ? proposal_.placement[unit] != device
                           : !problem_.is_allowed(unit, device)) {
      return false;
    }
    if (caps_.has_value() && !unit_placed_[unit] && !caps_->goes_to(unit, device)) return false;
    return inputs_there(child, device).at_ns - finish_ns_[parent.op] <= parent.crossing_ns;
  }

  // Of what has just become ready.
  void place_favourites() {
    while (!favourites_.empty()) {
      const OpId child = favourites_.back();
      favourites_.pop_back();
      if (!is_kept_for(child)) continue;
      const DeviceId device = device_[(*favourite_of_)[child]->op];
      place(child, device, std::max(inputs_there(child, device).at_ns, lanes_[device].free_ns));
    }
  }

  // Other ops of the unit may wait already, and no longer on this device.
  void claim_room(UnitId unit, DeviceId device, OpId first) {
    caps_->give(unit, device);
    for (const OpId op : problem_.ops(unit)) {
      if (op == first || missing_[op] > 0) continue;
      enqueue(op, device, inputs_there(op, device));
    }
  }

  void place(OpId op, DeviceId device, std::int64_t start_ns) {
    const UnitId unit = *problem_.unit(op);
    if (!unit_placed_[unit]) {
      unit_placed_[unit] = 1;
      proposal_.placement[unit] = device;
      if (caps_.has_value()) claim_room(unit, device, op);
    }
    placed_[op] = 1;
    device_[op] = device;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      send(producer, tensor, device);
    });
    finish_ns_[op] = saturating_add(start_ns, problem_.duration_ns(op, device));
    lanes_[device].free_ns = finish_ns_[op];
    lanes_[device].last = op;
    proposal_.order.push_back(op);
    for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
      if (--missing_[reader] == 0) make_ready(reader);
    });
  }

  // Units without ops: to the device with the most room for what it was given.
  void place_variables() {
    Table<DeviceId, std::int64_t> bytes(device_count_, 0);
    for (const UnitId unit : problem_.units()) {
      if (problem_.ops(unit).empty()) continue;
      std::int64_t& sum = bytes[proposal_.placement[unit]];
      sum = saturating_add(sum, bytes_of(problem_, unit));
    }
    place_idle_units(problem_, bytes, proposal_.placement);
  }

  void sort_by_start() {
    const auto start_ns = [&](OpId op) {
      return finish_ns_[op] - problem_.duration_ns(op, proposal_.placement[*problem_.unit(op)]);
    };
    std::sort(proposal_.order.begin(), proposal_.order.end(), [&](OpId a, OpId b) {
      return std::pair(start_ns(a), a) < std::pair(start_ns(b), b);
    });
  }

  const Problem& problem_;
  const Graph& graph_;
  const Times& times_;
  const Table<OpId, std::int64_t>& priority_;
  const std::size_t device_count_;
  const std::int64_t delay_;
  const FavouriteOf* favourite_of_;
  bool uniform_ = true;  // every op takes the same time wherever it is allowed
  Table<OpId, std::uint32_t> missing_;
  Table<OpId, std::int64_t> finish_ns_;
  Table<OpId, char> placed_;
  Table<OpId, DeviceId> device_;       // of those placed
  Table<OpId, std::uint32_t> queues_;  // that still hold the op
  Table<UnitId, char> unit_placed_;
  Table<DeviceId, Lane> lanes_;
  std::vector<std::int64_t> arrival_ns_;  // tensors x devices
  Table<ChannelId, std::int64_t> channel_free_ns_;
  Table<DeviceId, InputsThere> there_;  // of the op that is made ready
  std::optional<ByteCaps> caps_;
  std::vector<OpId> favourites_;  // ready now, and not looked at
  Proposal proposal_;
};

}  // namespace

Proposal earliest_task_first(const Problem& problem, const Times& times,
                             const Table<OpId, std::int64_t>& priority, const EtfOptions& options) {
  return EarliestTaskFirst(problem, times, priority, options).run();
}

Proposal etf(const Problem& problem, const Run&) {
  const Times times(problem);
  return earliest_task_first(problem, times, bottom_levels(problem, times), {});
}

}  // namespace pardnn
