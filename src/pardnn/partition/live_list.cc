// Live list: list scheduling that chooses devices by time and by what they hold at that moment.
#include "pardnn/partition/live_list.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/base/error.h"
#include "pardnn/partition/edges.h"
#include "pardnn/partition/fenwick.h"
#include "pardnn/partition/live_bytes.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

struct Event {
  enum class What : std::uint8_t { kFinish, kDispatch };  // finishes of an instant come first
  std::int64_t at_ns;
  What what;
  std::uint32_t id;  // of the op that finishes, or the device to look at
  auto operator<=>(const Event&) const = default;
};

struct Waiting {
  std::int64_t key, tie;  // least first
  OpId op;
  auto operator<=>(const Waiting&) const = default;
};

template <class T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

class LiveList {
 public:
  LiveList(const Problem& problem, const Times& times, const Table<OpId, std::int64_t>& priority,
           const LiveListOptions& options)
      : problem_(problem),
        graph_(problem.graph()),
        times_(times),
        priority_(priority),
        options_(options),
        bytes_(problem),
        rank_(graph_.ops().size(), 0),
        missing_(graph_.ops().size(), 0),
        finish_ns_(graph_.ops().size(), 0),
        started_(graph_.ops().size(), 0),
        there_(graph_.ops().size(), 0),
        is_source_(graph_.ops().size(), 0),
        is_made_(graph_.ops().size(), 0),
        waiting_for_(graph_.ops().size()),
        unit_placed_(problem.units().size(), 0),
        arrival_ns_(graph_.tensors().size() * problem.device_count(), kNotSent),
        channel_free_ns_(problem.machine().channels.size(), 0),
        fill_bytes_(problem.device_count(), 0) {
    placement_ = UnitPlacement(problem.units().size(), DeviceId{});
    std::vector<OpId> by_priority;
    for (const OpId op : graph_.ops()) {
      if (!graph_.is_every(op)) by_priority.push_back(op);
    }
    std::sort(by_priority.begin(), by_priority.end(), [&](OpId a, OpId b) {
      return std::pair(-priority[a], a) < std::pair(-priority[b], b);
    });
    ordinary_count_ = by_priority.size();
    for (std::size_t n = 0; n < by_priority.size(); ++n) rank_[by_priority[n]] = n;
    lanes_ = Table<DeviceId, Lane>(problem.device_count(), Lane(by_priority.size()));
    for (const DeviceId device : problem.devices()) {
      const std::int64_t reserve = problem.reserve_bytes(device);
      const std::int64_t room = std::max<std::int64_t>(0, problem.limit_bytes(device) - reserve);
      fill_bytes_[device] =
          reserve + static_cast<std::int64_t>(Wide{room} * options.fill_per_mille[device] / 1000);
    }
  }

  Proposal run() {
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      bool waits = false, read = false;
      for_each_producer(graph_, op, [&](OpId, std::optional<TensorId>) { waits = true; });
      for_each_reader(graph_, op, [&](OpId, std::optional<TensorId>) { read = true; });
      is_source_[op] = !waits && read;
      if (is_source_[op]) continue;
      // As often as `finish` will count it down: an op may read one tensor twice.
      for_each_reader(graph_, op,
                      [&](OpId reader, std::optional<TensorId>) { ++missing_[reader]; });
    }
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op) || is_source_[op] || missing_[op] > 0) continue;
      open_.push({-priority_[op], 0, op});
    }
    give_open(0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.what == Event::What::kFinish) {
        finish(OpId{event.id});
        const bool more = !events_.empty() && events_.top().at_ns == event.at_ns &&
                          events_.top().what == Event::What::kFinish;
        if (!more) give_open(event.at_ns);
      } else {
        dispatch(DeviceId{event.id}, event.at_ns);
      }
    }
    PARDNN_CHECK(order_.size() == ordinary_count_);
    place_idle_units(problem_, bytes_given(), placement_);
    return {std::move(placement_), std::move(order_)};
  }

 private:
  static constexpr std::int64_t kNotSent = -1;

  struct Lane {
    explicit Lane(std::size_t ops = 0) : backlog_ns(ops) {}
    std::int64_t free_ns = 0;
    Fenwick backlog_ns;               // of what waits here, by rank
    LeastFirst<Waiting> later;        // by the moment its inputs are there
    LeastFirst<Waiting> by_priority;  // there now
    LeastFirst<Waiting> by_growth;    // the same ops
  };

  DeviceId device(OpId op) const { return placement_[*problem_.unit(op)]; }

  // What has become ready at this instant is given away, most urgent first.
  void give_open(std::int64_t now_ns) {
    while (!open_.empty()) {
      const OpId op = open_.top().op;
      open_.pop();
      give(op, now_ns);
    }
  }

  void give(OpId op, std::int64_t now_ns) {
    const UnitId unit = *problem_.unit(op);
    if (!unit_placed_[unit]) settle(unit, choose(op, now_ns));
    const DeviceId to = placement_[unit];
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId>) {
      if (!is_source_[producer] || is_made_[producer]) return;
      ++missing_[op];
      waiting_for_[producer].push_back(op);
      if (waiting_for_[producer].size() > 1) return;
      const UnitId source = *problem_.unit(producer);
      if (!unit_placed_[source]) {
        settle(source, problem_.is_allowed(source, to) ? to : choose(producer, now_ns));
      }
      enqueue(producer, now_ns);
    });
    if (missing_[op] == 0) enqueue(op, now_ns);
  }

  void settle(UnitId unit, DeviceId device) {
    placement_[unit] = device;
    unit_placed_[unit] = 1;
  }

  // All inputs have been made.
  void enqueue(OpId op, std::int64_t now_ns) {
    const DeviceId to = device(op);
    Lane& lane = lanes_[to];
    const std::int64_t there_ns = std::max(now_ns, send_inputs(op, to));
    bytes_.give(op, to, [&](OpId other) { fell(other); });
    lane.backlog_ns.add(rank_[op], problem_.duration_ns(op, to));
    lane.later.push({there_ns, 0, op});
    wake(to, std::max(there_ns, lane.free_ns));
  }

  // Units that go where the op goes: its own and those of sources that nobody has asked for yet.
  std::vector<UnitId> followers(OpId op) const {
    std::vector<UnitId> units{*problem_.unit(op)};
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId>) {
      const UnitId unit = *problem_.unit(producer);
      if (!unit_placed_[unit]) units.push_back(unit);
    });
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    return units;
  }

  // Devices with room first, then the earliest finish, then least sent; without room, the most.
  DeviceId choose(OpId op, std::int64_t now_ns) const {
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    std::optional<std::pair<Key, DeviceId>> best;
    const std::vector<UnitId> units = followers(op);
    for (const DeviceId to : problem_.devices()) {
      if (!problem_.is_allowed(*problem_.unit(op), to)) continue;
      const std::int64_t over = bytes_.most_with(op, to, units) - fill_bytes_[to];
      const Lane& lane = lanes_[to];
      std::int64_t start_ns = std::max(now_ns, lane.free_ns) + lane.backlog_ns.sum(0, rank_[op]);
      start_ns = std::max(start_ns, arrival_ns(op, to));
      const Key key(std::max<std::int64_t>(0, over), start_ns + problem_.duration_ns(op, to),
                    bytes_.sent_bytes(op, to));
      if (!best.has_value() || key < best->first) best.emplace(key, to);
    }
    return best->second;
  }

  // When the last input would be there, what is still to be sent delayed.
  std::int64_t arrival_ns(OpId op, DeviceId to) const {
    std::int64_t last_ns = 0;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      last_ns = std::max(last_ns, arrival_ns(producer, tensor, to, options_.delay));
    });
    return last_ns;
  }

  std::int64_t arrival_ns(OpId producer, std::optional<TensorId> tensor, DeviceId to,
                          std::int64_t delay) const {
    if (!unit_placed_[*problem_.unit(producer)]) return 0;  // comes along
    const DeviceId from = device(producer);
    if (from == to) return finish_ns_[producer];
    if (tensor.has_value() && arrival_ns_[slot(*tensor, to)] != kNotSent) {
      return arrival_ns_[slot(*tensor, to)];
    }
    if (!problem_.has_link(from, to)) return kMaxQuantity;
    const Link& link = problem_.link(from, to);
    std::int64_t start_ns = finish_ns_[producer];
    if (problem_.rules().contention) {
      for (const ChannelId channel : link.channels) {
        start_ns = std::max(start_ns, channel_free_ns_[channel]);
      }
    }
    const std::int64_t crossing_ns = times_.busy_ns(tensor, from, to) + link.latency_ns;
    std::int64_t there_ns = saturating_add(start_ns, crossing_ns);
    for (std::int64_t n = 0; n < delay; ++n) there_ns = saturating_add(there_ns, crossing_ns);
    return there_ns;
  }

  // When the last input is there.
  std::int64_t send_inputs(OpId op, DeviceId to) {
    std::int64_t last_ns = 0;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      const DeviceId from = device(producer);
      if (from != to && !problem_.has_link(from, to)) return;  // refused when it is simulated
      const std::int64_t there_ns = arrival_ns(producer, tensor, to, 0);
      last_ns = std::max(last_ns, there_ns);
      if (from == to || !tensor.has_value()) return;
      std::int64_t& known_ns = arrival_ns_[slot(*tensor, to)];
      if (known_ns != kNotSent) return;
      known_ns = there_ns;
      const Link& link = problem_.link(from, to);
      for (const ChannelId channel : link.channels) {
        channel_free_ns_[channel] = there_ns - link.latency_ns;
      }
    });
    return last_ns;
  }

  void wake(DeviceId device, std::int64_t at_ns) {
    events_.push({at_ns, Event::What::kDispatch, index(device)});
  }

  void dispatch(DeviceId device, std::int64_t now_ns) {
    Lane& lane = lanes_[device];
    if (lane.free_ns > now_ns) return;
    while (!lane.later.empty() && lane.later.top().key <= now_ns) {
      const OpId op = lane.later.top().op;
      lane.later.pop();
      there_[op] = 1;
      lane.by_priority.push({-priority_[op], 0, op});
      lane.by_growth.push({bytes_.growth_bytes(op), -priority_[op], op});
    }
    const std::optional<OpId> op = take(device, lane);
    if (!op.has_value()) return;
    started_[*op] = 1;
    order_.push_back(*op);
    bytes_.start(*op);
    const std::int64_t duration_ns = problem_.duration_ns(*op, device);
    lane.backlog_ns.add(rank_[*op], -duration_ns);
    lane.free_ns = saturating_add(now_ns, duration_ns);
    finish_ns_[*op] = lane.free_ns;
    events_.push({lane.free_ns, Event::What::kFinish, index(*op)});
    if (!lane.by_priority.empty() || !lane.later.empty()) {
      const std::int64_t next_ns = lane.by_priority.empty() ? lane.later.top().key : 0;
      wake(device, std::max(next_ns, lane.free_ns));
    }
  }

  std::optional<OpId> take(DeviceId device, Lane& lane) {
    const auto drop_started = [&](LeastFirst<Waiting>& heap) {
      while (!heap.empty() && started_[heap.top().op]) heap.pop();
    };
    drop_started(lane.by_priority);
    if (lane.by_priority.empty()) return std::nullopt;
    const OpId urgent = lane.by_priority.top().op;
    const bool has_room =
        bytes_.used_bytes(device) + bytes_.taken_bytes(urgent) <= problem_.limit_bytes(device);
    if (has_room && !options_.frees_first) return urgent;
    while (true) {  // a growth may have risen again when another reader came here
      drop_started(lane.by_growth);
      const Waiting lean = lane.by_growth.top();
      const std::int64_t growth = bytes_.growth_bytes(lean.op);
      if (growth <= lean.key) return has_room && lean.key > 0 ? urgent : lean.op;
      lane.by_growth.pop();
      lane.by_growth.push({growth, lean.tie, lean.op});
    }
  }

  void fell(OpId op) {
    if (started_[op] || !there_[op]) return;
    lanes_[device(op)].by_growth.push({bytes_.growth_bytes(op), -priority_[op], op});
  }

  void finish(OpId op) {
    bytes_.finish(op, [&](OpId other) { fell(other); });
    if (is_source_[op]) {
      is_made_[op] = 1;
      for (const OpId reader : waiting_for_[op]) {
        if (--missing_[reader] == 0) open_.push({-priority_[reader], 0, reader});
      }
      return;
    }
    for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
      if (--missing_[reader] == 0) open_.push({-priority_[reader], 0, reader});
    });
  }

  Table<DeviceId, std::int64_t> bytes_given() const {
    Table<DeviceId, std::int64_t> given(problem_.device_count(), 0);
    for (const UnitId unit : problem_.units()) {
      if (problem_.ops(unit).empty()) continue;
      std::int64_t& sum = given[placement_[unit]];
      sum = saturating_add(sum, bytes_of(problem_, unit));
    }
    return given;
  }

  std::size_t slot(TensorId tensor, DeviceId device) const {
    return index(tensor) * problem_.device_count() + index(device);
  }

  const Problem& problem_;
  const Graph& graph_;
  const Times& times_;
  const Table<OpId, std::int64_t>& priority_;
  const LiveListOptions options_;
  LiveBytes bytes_;
  std::size_t ordinary_count_ = 0;
  Table<OpId, std::size_t> rank_;       // by priority
  Table<OpId, std::uint32_t> missing_;  // inputs that have not been made
  Table<OpId, std::int64_t> finish_ns_;
  Table<OpId, char> started_, there_;
  // Sources (a read of weights) wait until an op that reads them has all its other inputs, and run
  // where that is.
  Table<OpId, char> is_source_, is_made_;
  Table<OpId, std::vector<OpId>> waiting_for_;
  Table<UnitId, char> unit_placed_;
  Table<DeviceId, Lane> lanes_;
  std::vector<std::int64_t> arrival_ns_;  // tensors x devices
  Table<ChannelId, std::int64_t> channel_free_ns_;
  Table<DeviceId, std::int64_t> fill_bytes_;
  LeastFirst<Waiting> open_;  // without a device, all inputs made
  LeastFirst<Event> events_;
  UnitPlacement placement_;
  std::vector<OpId> order_;
};

}  // namespace

Proposal list_by_live_bytes(const Problem& problem, const Times& times,
                            const Table<OpId, std::int64_t>& priority,
                            const LiveListOptions& options) {
  return LiveList(problem, times, priority, options).run();
}

}  // namespace pardnn
