// Orders: ways to line up all ordinary ops of a step; each respects the edges.
#include "pardnn/partition/orders.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>

#include "pardnn/partition/edges.h"
#include "pardnn/partition/local_buffers.h"

namespace pardnn {

std::vector<OpId> id_order(const Graph& graph) {
  std::vector<OpId> order;
  order.reserve(graph.ops().size());
  for (const OpId op : graph.ops()) {
    if (!graph.is_every(op)) order.push_back(op);
  }
  return order;
}

std::vector<OpId> given_order(const Graph& graph) {
  std::vector<OpId> order = id_order(graph);
  std::sort(order.begin(), order.end(),
            [&](OpId a, OpId b) { return *graph.at(a) < *graph.at(b); });
  return order;
}

std::vector<OpId> order_by(const Graph& graph, const Table<OpId, std::int64_t>& moment) {
  std::vector<OpId> order = id_order(graph);
  std::sort(order.begin(), order.end(),
            [&](OpId a, OpId b) { return std::tie(moment[a], a) < std::tie(moment[b], b); });
  return order;
}

namespace {

struct Event {
  enum class What : std::uint8_t { kFinish, kDispatch };  // finishes of an instant come first
  std::int64_t at_ns;
  What what;
  std::uint32_t id;  // of the op that finishes, or the device to look at
  auto operator<=>(const Event&) const = default;
};

struct Ready {
  std::int64_t key, tie;  // least first
  OpId op;
  auto operator<=>(const Ready&) const = default;
};

template <class T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

class ListScheduler {
 public:
  ListScheduler(const Problem& problem, const Times& times, const UnitPlacement& placement,
                const Table<OpId, std::int64_t>& priority, Take take)
      : problem_(problem),
        graph_(problem.graph()),
        times_(times),
        priority_(priority),
        take_(take),
        device_(graph_.ops().size()),
        missing_(graph_.ops().size(), 0),
        ready_ns_(graph_.ops().size(), 0),
        started_(graph_.ops().size(), 0),
        lanes_(problem.device_count()),
        channel_free_ns_(problem.machine().channels.size(), 0),
        arrival_ns_(problem.device_count(), 0) {
    if (take != Take::kPriority) buffers_.emplace(problem, placement);
    for (const OpId op : graph_.ops()) {
      if (!graph_.is_every(op)) device_[op] = placement[*problem.unit(op)];
    }
  }

  std::vector<OpId> run() {
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      for_each_reader(graph_, op,
                      [&](OpId reader, std::optional<TensorId>) { ++missing_[reader]; });
    }
    for (const OpId op : graph_.ops()) {
      if (!graph_.is_every(op) && missing_[op] == 0) make_ready(op, 0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.what == Event::What::kFinish) {
        finish(OpId{event.id}, event.at_ns);
      } else {
        dispatch(DeviceId{event.id}, event.at_ns);
      }
    }
    return std::move(order_);
  }

 private:
  struct Lane {
    std::int64_t free_ns = 0;
    LeastFirst<Ready> later;        // by the moment they are ready
    LeastFirst<Ready> by_priority;  // ready now
    LeastFirst<Ready> by_growth;    // the same ops, only when memory is looked at
  };

  void make_ready(OpId op, std::int64_t at_ns) {
    Lane& lane = lanes_[device_[op]];
    lane.later.push({at_ns, 0, op});
    wake(device_[op], std::max(at_ns, lane.free_ns));
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
      lane.by_priority.push({-priority_[op], 0, op});
      if (buffers_) lane.by_growth.push({buffers_->growth_bytes(op), -priority_[op], op});
    }
    const std::optional<OpId> op = choose(device, lane);
    if (!op.has_value()) return;
    started_[*op] = 1;
    order_.push_back(*op);
    if (buffers_) buffers_->start(*op);
    lane.free_ns = now_ns + problem_.duration_ns(*op, device);
    events_.push({lane.free_ns, Event::What::kFinish, index(*op)});
    if (!lane.by_priority.empty() || !lane.later.empty()) {
      const std::int64_t next_ns = lane.by_priority.empty() ? lane.later.top().key : 0;
      wake(device, std::max(next_ns, lane.free_ns));
    }
  }

  std::optional<OpId> choose(DeviceId device, Lane& lane) {
    const auto drop_started = [&](LeastFirst<Ready>& heap) {
      while (!heap.empty() && started_[heap.top().op]) heap.pop();
    };
    drop_started(lane.by_priority);
    if (lane.by_priority.empty()) return std::nullopt;
    const OpId urgent = lane.by_priority.top().op;
    if (take_ == Take::kPriority) return urgent;
    // Growth only falls while an op waits, and each fall pushes it again: older entries are never
    // met before newer ones.
    drop_started(lane.by_growth);
    const Ready& lean = lane.by_growth.top();
    if (take_ == Take::kLeastBytes || lean.key <= 0) return lean.op;
    if (take_ == Take::kFreeing) return urgent;
    const std::int64_t needed = buffers_->used_bytes(device) + buffers_->taken_bytes(urgent);
    return needed > problem_.limit_bytes(device) ? lean.op : urgent;
  }

  void finish(OpId op, std::int64_t now_ns) {
    if (buffers_) {
      buffers_->finish(op, [&](OpId last) {
        if (started_[last] || missing_[last] > 0 || ready_ns_[last] > now_ns) return;
        lanes_[device_[last]].by_growth.push(
            {buffers_->growth_bytes(last), -priority_[last], last});
      });
    }
    for (const TensorId tensor : graph_.outputs(op)) {
      deliver(op, tensor, graph_.readers(tensor), now_ns);
    }
    deliver(op, std::nullopt, graph_.control_readers(op), now_ns);
  }

  // Sends the tensor, or the signal, to each device that waits for it, least device first.
  void deliver(OpId op, std::optional<TensorId> tensor, std::span<const OpId> readers,
               std::int64_t now_ns) {
    const DeviceId here = device_[op];
    DeviceSet there;
    for (const OpId reader : readers) there.set(index(device_[reader]));
    there.reset(index(here));
    if (there.any()) {
      for (const DeviceId to : problem_.devices()) {
        if (there[index(to)]) arrival_ns_[to] = transfer(tensor, here, to, now_ns);
      }
    }
    arrival_ns_[here] = now_ns;
    for (const OpId reader : readers) {
      ready_ns_[reader] = std::max(ready_ns_[reader], arrival_ns_[device_[reader]]);
      if (--missing_[reader] == 0) make_ready(reader, ready_ns_[reader]);
    }
  }

  std::int64_t transfer(std::optional<TensorId> tensor, DeviceId from, DeviceId to,
                        std::int64_t now_ns) {
    if (!problem_.has_link(from, to)) return now_ns;  // refused when it is simulated
    const Link& link = problem_.link(from, to);
    const std::int64_t busy_ns = times_.busy_ns(tensor, from, to);
    std::int64_t start_ns = now_ns;
    if (problem_.rules().contention) {
      for (const ChannelId channel : link.channels) {
        start_ns = std::max(start_ns, channel_free_ns_[channel]);
      }
      for (const ChannelId channel : link.channels) channel_free_ns_[channel] = start_ns + busy_ns;
    }
    return start_ns + busy_ns + link.latency_ns;
  }

  const Problem& problem_;
  const Graph& graph_;
  const Times& times_;
  const Table<OpId, std::int64_t>& priority_;
  const Take take_;
  Table<OpId, DeviceId> device_;
  Table<OpId, std::uint32_t> missing_;  // inputs that have not been made
  Table<OpId, std::int64_t> ready_ns_;
  Table<OpId, char> started_;
  Table<DeviceId, Lane> lanes_;
  Table<ChannelId, std::int64_t> channel_free_ns_;
  Table<DeviceId, std::int64_t> arrival_ns_;
  std::optional<LocalBuffers> buffers_;
  LeastFirst<Event> events_;
  std::vector<OpId> order_;
};

}  // namespace

std::vector<OpId> list_order(const Problem& problem, const Times& times,
                             const UnitPlacement& placement,
                             const Table<OpId, std::int64_t>& priority, Take take) {
  return ListScheduler(problem, times, placement, priority, take).run();
}

}  // namespace pardnn
