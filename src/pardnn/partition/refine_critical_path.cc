// Refinement of the schedule's critical path, step 1d 3 of ParDNN.
#include "pardnn/partition/refine_critical_path.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/partition/edges.h"

namespace pardnn {
namespace {

struct Move {
  UnitId unit;
  DeviceId to;
  std::int64_t gain_ns;
  std::vector<UnitId> touches;  // itself and its neighbours
};

// A simulated schedule that can be asked when a value is where.
class ScheduleView {
 public:
  explicit ScheduleView(const Refinement& refinement)
      : problem_(refinement.problem()),
        graph_(problem_.graph()),
        times_(refinement.times()),
        placement_(refinement.placement()),
        timeline_(refinement.timeline()),
        lines_(problem_.device_count()) {
    for (const OpId op : graph_.ops()) {
      if (!graph_.is_every(op)) lines_[device(op)].push_back(op);
    }
    for (std::vector<OpId>& line : lines_) {
      std::sort(line.begin(), line.end(),
                [&](OpId a, OpId b) { return timeline_.start_ns[a] < timeline_.start_ns[b]; });
    }
    for (const Transfer& transfer : timeline_.transfers) sent_.push_back(&transfer);
    std::sort(sent_.begin(), sent_.end(),
              [](const Transfer* a, const Transfer* b) { return key(*a) < key(*b); });
  }

  DeviceId device(OpId op) const { return placement_[*problem_.unit(op)]; }
  std::int64_t start_ns(OpId op) const { return timeline_.start_ns[op]; }

  std::optional<OpId> last_op() const {
    std::optional<OpId> last;
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      if (!last || timeline_.finish_ns[op] > timeline_.finish_ns[*last]) last = op;
    }
    return last;
  }

  // When the producer's value is, or would be, on a device.
  std::int64_t there_ns(OpId producer, std::optional<TensorId> tensor, DeviceId to) const {
    if (device(producer) == to) return timeline_.finish_ns[producer];
    const std::optional<std::uint32_t> output =
        tensor ? std::optional(graph_.tensor(*tensor).number) : std::nullopt;
    const std::tuple wanted(producer, output, to);
    const auto it = std::lower_bound(
        sent_.begin(), sent_.end(), wanted,
        [](const Transfer* transfer, const auto& value) { return key(*transfer) < value; });
    if (it != sent_.end() && key(**it) == wanted) return (*it)->arrival_ns;
    return saturating_add(timeline_.finish_ns[producer], times_.mean_crossing_ns(tensor));
  }

  // The op that runs on the device just before `at_ns`.
  std::optional<OpId> before(DeviceId device, std::int64_t at_ns) const {
    const std::vector<OpId>& line = lines_[device];
    const auto it =
        std::lower_bound(line.begin(), line.end(), at_ns,
                         [&](OpId op, std::int64_t ns) { return timeline_.start_ns[op] < ns; });
    return it == line.begin() ? std::nullopt : std::optional(*(it - 1));
  }

  // The last of the op's inputs to be there; nothing for an op without inputs.
  std::optional<std::pair<OpId, std::int64_t>> last_input(OpId op) const {
    std::optional<std::pair<OpId, std::int64_t>> last;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      const std::int64_t ns = there_ns(producer, tensor, device(op));
      if (!last || ns > last->second || (ns == last->second && producer < last->first)) {
        last.emplace(producer, ns);
      }
    });
    return last;
  }

  // What the step might gain at v if u, which it waits for, ran on v's device.
  std::int64_t gain_ns(OpId u, OpId v) const {
    const DeviceId to = device(v);
    std::int64_t new_start_ns = 0;
    for_each_producer(graph_, u, [&](OpId producer, std::optional<TensorId> tensor) {
      new_start_ns = std::max(new_start_ns, there_ns(producer, tensor, to));
    });
    if (const auto op = before(to, start_ns(v))) {
      new_start_ns = std::max(new_start_ns, timeline_.finish_ns[*op]);
    }
    std::int64_t others_ns = saturating_add(new_start_ns, problem_.duration_ns(u, to));
    for_each_producer(graph_, v, [&](OpId producer, std::optional<TensorId> tensor) {
      if (producer != u) others_ns = std::max(others_ns, there_ns(producer, tensor, to));
    });
    return start_ns(v) - others_ns;
  }

 private:
  static std::tuple<OpId, std::optional<std::uint32_t>, DeviceId> key(const Transfer& transfer) {
    return {transfer.producer, transfer.output, transfer.to};
  }

  const Problem& problem_;
  const Graph& graph_;
  const Times& times_;
  const UnitPlacement& placement_;
  const Timeline& timeline_;
  Table<DeviceId, std::vector<OpId>> lines_;  // by start
  std::vector<const Transfer*> sent_;         // by key
};

std::vector<UnitId> unit_and_neighbours(const Problem& problem, UnitId unit) {
  std::vector<UnitId> units{unit};
  const auto add = [&](OpId op, std::optional<TensorId>) { units.push_back(*problem.unit(op)); };
  for (const OpId op : problem.ops(unit)) {
    for_each_producer(problem.graph(), op, add);
    for_each_reader(problem.graph(), op, add);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

// Moves of positive gain along the chain, the best first, ties by least unit.
std::vector<Move> moves_along_chain(const Refinement& refinement) {
  const Problem& problem = refinement.problem();
  const ScheduleView view(refinement);
  std::vector<Move> moves;
  std::optional<OpId> op = view.last_op();
  while (op.has_value() && view.start_ns(*op) > 0) {
    const std::optional<std::pair<OpId, std::int64_t>> input = view.last_input(*op);
    if (!input.has_value() || input->second < view.start_ns(*op)) {
      op = view.before(view.device(*op), view.start_ns(*op));
      continue;
    }
    const OpId u = input->first;
    const UnitId unit = *problem.unit(u);
    const DeviceId to = view.device(*op);
    if (view.device(u) != to && problem.is_allowed(unit, to)) {
      const std::int64_t gain_ns = view.gain_ns(u, *op);
      if (gain_ns > 0) moves.push_back({unit, to, gain_ns, unit_and_neighbours(problem, unit)});
    }
    op = u;
  }
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::tuple(b.gain_ns, a.unit) < std::tuple(a.gain_ns, b.unit);
  });
  return moves;
}

using Refused = std::set<std::pair<UnitId, DeviceId>>;

// Tries the first move that is not refused, or with `all` every one that does not touch those
// before it; whether the step became shorter, nothing when no move is left.
std::optional<bool> play_round(Refinement& refinement, bool all, Refused& refused) {
  UnitPlacement placement = refinement.placement();
  std::set<UnitId> touched;
  std::optional<std::pair<UnitId, DeviceId>> first;
  for (const Move& move : moves_along_chain(refinement)) {
    if (refused.contains({move.unit, move.to})) continue;
    const bool apart = std::none_of(move.touches.begin(), move.touches.end(),
                                    [&](UnitId unit) { return touched.contains(unit); });
    if (!apart) continue;
    if (!first.has_value()) first.emplace(move.unit, move.to);
    placement[move.unit] = move.to;
    touched.insert(move.touches.begin(), move.touches.end());
    if (!all) break;
  }
  if (!first.has_value()) return std::nullopt;
  const std::int64_t before_ns = refinement.step_ns();
  refinement.offer(std::move(placement));
  const bool shorter = refinement.step_ns() < before_ns;
  if (!all && !shorter) refused.insert(*first);
  return shorter;
}

}  // namespace

void refine_critical_path(Refinement& refinement) {
  const auto rounds = static_cast<int>(refinement.problem().device_count()) + 1;
  Refused refused;
  int fruitless = 0;
  for (int round = 0; round < rounds && fruitless < 2; ++round) {
    const std::optional<bool> shorter = play_round(refinement, round % 2 != 0, refused);
    if (!shorter.has_value()) return;
    fruitless = *shorter ? 0 : fruitless + 1;
  }
}

void follow_critical_path(Refinement& refinement, int rounds, const Run& run) {
  Refused refused;
  bool all = true;
  for (int round = 0; round < rounds && !run.stopped(); ++round) {
    const std::optional<bool> shorter = play_round(refinement, all, refused);
    if (!shorter.has_value()) return;
    all = !all && *shorter;  // all together only after a move that helped
  }
}

}  // namespace pardnn
