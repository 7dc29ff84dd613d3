// Fold: a line of units on which backward ops lie beside the forward ops whose values they read.
#include "pardnn/partition/fold.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pardnn/partition/edges.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

constexpr std::int64_t kWeighty = 4;  // an input this many times smaller than the largest is not

bool names_phases(const Graph& graph) {
  bool forward = false, backward = false;
  for (const OpId op : graph.ops()) {
    forward |= graph.phase(op) == Phase::kForward;
    backward |= graph.phase(op) == Phase::kBackward;
  }
  return forward && backward;
}

// One device's step, as far as links and allowed devices let it be one.
struct OneDevice {
  Table<OpId, std::int64_t> start_ns;
  std::vector<Buffer> at_peak;
  std::int64_t peak_ns = 0;
};

OneDevice run_on_one(const Problem& problem, const Times& times, Trial& trial) {
  Proposal proposal{.placement = UnitPlacement(problem.units().size(), DeviceId{}), .order = {}};
  for (const UnitId unit : problem.units()) {
    for (const DeviceId device : problem.devices()) {
      if (!problem.is_allowed(unit, device)) continue;
      proposal.placement[unit] = device;
      break;
    }
  }
  proposal.order = list_order(problem, times, proposal.placement,
                              bottom_levels(problem, times, proposal.placement), Take::kFreeing);
  OneDevice answer;
  const Timeline* timeline = trial.schedule(proposal);
  if (timeline == nullptr) {  // a link is missing: the moments of the list will do
    answer.start_ns.assign(problem.graph().ops().size(), 0);
    std::int64_t at_ns = 0;
    for (const OpId op : proposal.order) answer.start_ns[op] = at_ns++;
    answer.peak_ns = at_ns / 2;
    return answer;
  }
  answer.start_ns = timeline->start_ns;
  const Table<DeviceId, Peak> peaks = trial.peaks();
  const auto fullest = std::max_element(
      peaks.begin(), peaks.end(), [](const Peak& a, const Peak& b) { return a.bytes < b.bytes; });
  answer.peak_ns = fullest->at_ns;
  for (const Buffer& buffer : trial.lifetimes()) {
    if (buffer.begin_ns <= answer.peak_ns && answer.peak_ns < buffer.end_ns) {
      answer.at_peak.push_back(buffer);
    }
  }
  return answer;
}

Table<OpId, char> forward_ops(const Graph& graph, const OneDevice& step) {
  Table<OpId, char> forward(graph.ops().size(), 0);
  const bool named = names_phases(graph);
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    if (named && graph.phase(op) != Phase::kNone) {
      forward[op] = graph.phase(op) == Phase::kForward;
    } else {
      forward[op] = step.start_ns[op] < step.peak_ns;
    }
  }
  return forward;
}

// Positions along the fold.
class Positions {
 public:
  Positions(const Problem& problem, const Table<OpId, char>& forward)
      : problem_(problem), graph_(problem.graph()), at_(graph_.ops().size()) {
    const Table<OpId, std::int64_t> start_ns = earliest_starts(problem);
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      if (!forward[op]) {
        at_[op] = behind_weighty_producers(op);
      } else {
        at_[op] = waits_for_others(op) ? start_ns[op] : just_before_readers(op, forward, start_ns);
      }
    }
    // What hangs on sources alone (a read of weights, a decay of a moment) belongs to what reads
    // it.
    for (std::size_t n = graph_.ops().size(); n-- > 0;) {
      const OpId op = graph_.ops()[n];
      if (!graph_.is_every(op) && !at_[op].has_value()) at_[op] = at_first_reader(op);
    }
  }

  // 0 for an op that neither waits for nor is read by any other.
  std::int64_t of(OpId op) const { return at_[op].value_or(0); }

 private:
  bool waits_for_others(OpId op) const {
    bool waits = false;
    for_each_producer(graph_, op, [&](OpId, std::optional<TensorId>) { waits = true; });
    return waits;
  }

  // A source could start at once; it belongs to the first forward op that reads it.
  std::optional<std::int64_t> just_before_readers(OpId op, const Table<OpId, char>& forward,
                                                  const Table<OpId, std::int64_t>& start_ns) const {
    std::optional<std::int64_t> first;
    for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
      if (!forward[reader]) return;
      const std::int64_t latest_ns = start_ns[reader] - problem_.mean_duration_ns(op);
      first = std::min(first.value_or(latest_ns), latest_ns);
    });
    return first;
  }

  std::optional<std::int64_t> behind_weighty_producers(OpId op) const {
    std::int64_t largest = 0;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      if (tensor.has_value() && at_[producer].has_value()) {
        largest = std::max(largest, problem_.bytes(*tensor));
      }
    });
    std::optional<std::int64_t> least;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      if (!tensor.has_value() || !at_[producer].has_value()) return;
      if (problem_.bytes(*tensor) < largest / kWeighty) return;
      least = std::min(least.value_or(*at_[producer]), *at_[producer]);
    });
    return least;
  }

  std::optional<std::int64_t> at_first_reader(OpId op) const {
    std::optional<std::int64_t> first;
    for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
      if (at_[reader].has_value()) first = std::min(first.value_or(*at_[reader]), *at_[reader]);
    });
    return first;
  }

  const Problem& problem_;
  const Graph& graph_;
  Table<OpId, std::optional<std::int64_t>> at_;
};

// Bytes of the peak, by the unit that made them.
Table<UnitId, std::int64_t> held_at_peak(const Problem& problem, const OneDevice& step) {
  Table<UnitId, std::int64_t> held(problem.units().size(), 0);
  for (const Buffer& buffer : step.at_peak) {
    if (buffer.variable.has_value()) held[problem.unit(*buffer.variable)] += buffer.bytes;
    const std::optional<OpId> op =
        buffer.tensor ? std::optional(problem.graph().tensor(*buffer.tensor).producer) : buffer.op;
    if (!op.has_value()) continue;
    if (const auto unit = problem.unit(*op)) held[*unit] += buffer.bytes;
  }
  return held;
}

}  // namespace

FoldedStep fold_step(const Problem& problem, const Times& times, Trial& trial) {
  const OneDevice step = run_on_one(problem, times, trial);
  const Positions positions(problem, forward_ops(problem.graph(), step));
  Table<UnitId, std::int64_t> at(problem.units().size(), 0);
  FoldedStep folded{.units = {}, .weights = weigh_units(problem)};
  for (const UnitId unit : problem.units()) {
    if (problem.ops(unit).empty()) continue;
    folded.units.push_back(unit);
    at[unit] = positions.of(problem.ops(unit).front());
    for (const OpId op : problem.ops(unit)) at[unit] = std::min(at[unit], positions.of(op));
  }
  std::sort(folded.units.begin(), folded.units.end(), [&](UnitId a, UnitId b) {
    return std::tuple(at[a], problem.ops(a).front()) < std::tuple(at[b], problem.ops(b).front());
  });
  folded.weights.bytes = held_at_peak(problem, step);
  return folded;
}

}  // namespace pardnn
