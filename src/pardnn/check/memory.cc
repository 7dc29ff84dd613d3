#include "pardnn/check/memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/base/integers.h"
#include "pardnn/check/books.h"

namespace pardnn::checking {

namespace {

// Times as replayed.
class RealTime : public Clock {
 public:
  RealTime(const Graph& graph, const Replay& replay, DeviceId device) : replay_(replay) {
    for (const Transfer& transfer : replay.transfers) {
      if (!transfer.output) continue;
      const TensorId tensor = graph.outputs(transfer.producer)[*transfer.output];
      if (transfer.to == device) begin_[tensor] = transfer.start_ns;
      if (transfer.from == device) arrival_[{tensor, transfer.to}] = transfer.arrival_ns;
    }
  }
  std::int64_t start(OpId op) const override { return replay_.start_ns[op]; }
  std::int64_t finish(OpId op) const override { return replay_.finish_ns[op]; }
  std::int64_t copy_begin(TensorId tensor) const override { return begin_.at(tensor); }
  std::int64_t sent_until(TensorId tensor, DeviceId to) const override {
    return arrival_.at({tensor, to});
  }
  std::int64_t end_of_step() const override { return replay_.step_ns; }

 private:
  const Replay& replay_;
  std::map<TensorId, std::int64_t> begin_;
  std::map<std::pair<TensorId, DeviceId>, std::int64_t> arrival_;
};

// What depends on what, through edges and sequences: for every op and device the last op there
// that it depends on, and the first op there that depends on it, as positions of the sequence.
class Dependence {
 public:
  Dependence(const Problem& problem, const Placement& placement, const Replay& replay)
      : graph_(problem.graph()), devices_(problem.device_count()) {
    const std::size_t count = graph_.ops().size();
    position_.assign(count, 0);
    device_.assign(count, DeviceId{0});
    Table<OpId, std::optional<OpId>> before(count);
    for (const DeviceId device : problem.devices()) {
      const auto& sequence = replay.sequences[device];
      for (std::size_t i = 0; i < sequence.size(); ++i) {
        position_[sequence[i]] = static_cast<std::int64_t>(i);
        device_[sequence[i]] = device;
        if (i > 0) before[sequence[i]] = sequence[i - 1];
      }
    }
    // Starts are a topological order of edges and sequences, for every op lasts at least 1 ns.
    std::vector<OpId> order;
    for (const OpId op : graph_.ops()) {
      if (placement.ops[op]) order.push_back(op);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](OpId a, OpId b) { return replay.start_ns[a] < replay.start_ns[b]; });
    last_before_.assign(count * devices_, -1);
    first_after_.assign(count * devices_, kNever);
    for (const OpId op : order) {
      for_each_cause(op, before[op], [&](OpId cause) {
        for (std::size_t d = 0; d < devices_; ++d) {
          auto& last = last_before_[index(op) * devices_ + d];
          last = std::max(last, last_before_[index(cause) * devices_ + d]);
        }
        auto& own = last_before_[index(op) * devices_ + index(device_[cause])];
        own = std::max(own, position_[cause]);
      });
    }
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      for_each_cause(*op, before[*op], [&](OpId cause) {
        for (std::size_t d = 0; d < devices_; ++d) {
          auto& first = first_after_[index(cause) * devices_ + d];
          first = std::min(first, first_after_[index(*op) * devices_ + d]);
        }
        auto& own = first_after_[index(cause) * devices_ + index(device_[*op])];
        own = std::min(own, position_[*op]);
      });
    }
  }

  static constexpr std::int64_t kNever = kMaxQuantity;
  std::int64_t position(OpId op) const { return position_[op]; }
  // -1: none.
  std::int64_t last_before(OpId op, DeviceId device) const {
    return last_before_[index(op) * devices_ + index(device)];
  }
  // kNever: none.
  std::int64_t first_after(OpId op, DeviceId device) const {
    return first_after_[index(op) * devices_ + index(device)];
  }

 private:
  template <class Visit>
  void for_each_cause(OpId op, std::optional<OpId> before, Visit visit) const {
    if (before) visit(*before);
    for (const OpId cause : graph_.controls(op)) visit(cause);
    for (const Input& input : graph_.inputs(op)) {
      if (input.is_variable()) continue;
      const OpId producer = graph_.tensor(input.tensor()).producer;
      if (!graph_.is_every(producer)) visit(producer);
    }
  }

  const Graph& graph_;
  const std::size_t devices_;
  Table<OpId, std::int64_t> position_;
  Table<OpId, DeviceId> device_;
  std::vector<std::int64_t> last_before_, first_after_;
};

// Positions of the sequence instead of times: op i runs during [2i + 1, 2i + 2), the moments
// before it are 2i. Whatever the timing, a buffer is there at most as long as this says (rule E1).
class AnyTiming : public Clock {
 public:
  AnyTiming(const Graph& graph, const Placement& placement, const Dependence& dependence,
            DeviceId device, std::size_t length)
      : graph_(graph),
        placement_(placement),
        dependence_(dependence),
        device_(device),
        end_(2 * static_cast<std::int64_t>(length) + 1) {}
  std::int64_t start(OpId op) const override { return 2 * dependence_.position(op) + 1; }
  std::int64_t finish(OpId op) const override { return 2 * dependence_.position(op) + 2; }
  std::int64_t copy_begin(TensorId tensor) const override {
    const std::int64_t last = dependence_.last_before(graph_.tensor(tensor).producer, device_);
    return 2 * last + 2;
  }
  std::int64_t sent_until(TensorId tensor, DeviceId to) const override {
    std::int64_t first = Dependence::kNever;
    for (const OpId reader : graph_.readers(tensor)) {
      if (placement_.ops[reader] == to) {
        first = std::min(first, dependence_.first_after(reader, device_));
      }
    }
    return first == Dependence::kNever ? end_ : 2 * first + 1;
  }
  std::int64_t end_of_step() const override { return end_; }

 private:
  const Graph& graph_;
  const Placement& placement_;
  const Dependence& dependence_;
  const DeviceId device_;
  const std::int64_t end_;
};

// Most bytes and the first moment of it; at one moment releases come before allocations.
std::pair<std::int64_t, std::int64_t> highest(std::int64_t resident,
                                              const std::vector<Held>& held) {
  std::vector<std::tuple<std::int64_t, std::int64_t>> changes;
  for (const Held& one : held) {
    changes.emplace_back(one.begin, one.bytes);
    changes.emplace_back(one.end, -one.bytes);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t now = resident, most = resident, when = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now += std::get<1>(changes[i]);
    const bool is_last_of_moment =
        i + 1 == changes.size() || std::get<0>(changes[i + 1]) != std::get<0>(changes[i]);
    if (is_last_of_moment && now > most) {
      most = now;
      when = std::get<0>(changes[i]);
    }
  }
  return {most, when};
}

}  // namespace

Table<DeviceId, Peak> peaks(const Problem& problem, const Placement& placement,
                            const Replay& replay) {
  Table<DeviceId, Peak> peaks(problem.device_count());
  const bool any_timing = problem.rules().dispatch == Dispatch::kSequence;
  std::optional<Dependence> dependence;
  if (any_timing) dependence.emplace(problem, placement, replay);
  for (const DeviceId device : problem.devices()) {
    const auto& sequence = replay.sequences[device];
    const RealTime real(problem.graph(), replay, device);
    Books books(problem, placement, device, real);
    books.run(sequence);
    const auto [bytes, at] = highest(books.resident_bytes(), books.held());
    peaks[device].bytes = bytes;
    peaks[device].at_ns = at;
    if (!any_timing) continue;
    const AnyTiming positions(problem.graph(), placement, *dependence, device, sequence.size());
    Books bound(problem, placement, device, positions);
    bound.run(sequence);
    peaks[device].any_timing_bytes = highest(bound.resident_bytes(), bound.held()).first;
  }
  return peaks;
}

}  // namespace pardnn::checking
