// Refinement of a cut: a first placement of the coarsest lumps, and moves.
#include "pardnn/partition/cut_refine.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace pardnn {
namespace {

constexpr std::size_t kPatience = 300;  // moves in vain that end a pass
constexpr int kMostPasses = 6;
constexpr std::int64_t kLeastPart = 100;   // of the cut that a pass saves if another is to follow
constexpr std::size_t kMostMembers = 200;  // of a wire whose members are looked at after a move

using Where = CutState::Where;

struct Candidate {
  std::int64_t minus_gain_ns;  // least first
  LumpId lump;
  auto operator<=>(const Candidate&) const = default;
};

void spread_excess(CutState& state) {
  if (state.cost().excess == 0) return;
  std::vector<Candidate> candidates;
  for (const LumpId lump : state.graph().lumps()) {
    if (!state.exceeds(*state.device(lump))) continue;
    if (const auto move = state.best_move(lump, -1, Where::kAnywhere))
      candidates.push_back({-move->gain_ns, lump});
  }
  std::sort(candidates.begin(), candidates.end());
  for (const Candidate& candidate : candidates) {
    if (state.cost().excess == 0) return;
    if (const auto move = state.best_move(candidate.lump, -1, Where::kAnywhere))
      state.move(candidate.lump, move->to);
  }
}

class Pass {
 public:
  explicit Pass(CutState& state)
      : state_(state),
        graph_(state.graph()),
        moved_(graph_.lumps().size(), 0),
        known_(graph_.lumps().size(), kNothing) {}

  // Whether the cost fell.
  bool run(const Run& run) {
    const CutCost before = state_.cost();
    most_excess_ = before.excess;
    fill();
    CutCost best = before;
    std::size_t best_count = 0;
    while (!queue_.empty() && undo_.size() - best_count < kPatience && !run.stopped()) {
      if (!step()) continue;
      if (state_.cost() < best) {
        best = state_.cost();
        best_count = undo_.size();
      }
    }
    while (undo_.size() > best_count) {
      state_.move(undo_.back().first, undo_.back().second);
      undo_.pop_back();
    }
    return best < before;
  }

 private:
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();

  // By how much a move may let the loads exceed their caps: together by no more than at first.
  std::int64_t room() const {
    return std::max<std::int64_t>(0, most_excess_ - state_.cost().excess);
  }

  void fill() {
    for (const LumpId lump : graph_.lumps()) {
      const auto wires = graph_.wires[lump];
      const bool is_near =
          std::any_of(wires.begin(), wires.end(), [&](WireId wire) { return state_.is_cut(wire); });
      if (is_near) look_at(lump);
    }
  }

  // Queues the lump's best move unless a move at least as good is queued already.
  void look_at(LumpId lump) {
    const auto move = state_.best_move(lump, room(), Where::kAlongWires);
    if (!move.has_value() || move->gain_ns <= known_[lump]) return;
    known_[lump] = move->gain_ns;
    queue_.push({-move->gain_ns, lump});
  }

  // Makes the first move in the queue if it is still what it was.
  bool step() {
    const Candidate candidate = queue_.top();
    queue_.pop();
    const LumpId lump = candidate.lump;
    if (moved_[lump] || known_[lump] != -candidate.minus_gain_ns) return false;
    known_[lump] = kNothing;
    const auto move = state_.best_move(lump, room(), Where::kAlongWires);
    if (!move.has_value()) return false;
    if (move->gain_ns < -candidate.minus_gain_ns) {
      known_[lump] = move->gain_ns;
      queue_.push({-move->gain_ns, lump});
      return false;
    }
    const DeviceId from = *state_.device(lump);
    undo_.emplace_back(lump, from);
    moved_[lump] = 1;
    state_.move(lump, move->to);
    look_around(lump, from, move->to);
    return true;
  }

  // The gains that may have grown.
  void look_around(LumpId lump, DeviceId from, DeviceId to) {
    for (const WireId wire : graph_.wires[lump]) {
      const auto members = graph_.members[wire];
      if (members.size() > kMostMembers) continue;
      if (state_.members(wire, from) > 1 && state_.members(wire, to) > 1) continue;
      for (const LumpId member : members) {
        if (!moved_[member]) look_at(member);
      }
    }
  }

  CutState& state_;
  const CutGraph& graph_;
  Table<LumpId, char> moved_;
  Table<LumpId, std::int64_t> known_;  // gain that is queued
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>> queue_;
  std::vector<std::pair<LumpId, DeviceId>> undo_;
  std::int64_t most_excess_ = 0;
};

}  // namespace

void place_lumps(CutState& state) {
  for (const LumpId lump : state.graph().lumps()) {
    std::optional<std::tuple<std::int64_t, std::int64_t, std::int64_t, DeviceId>> best;
    for (std::size_t n = 0; n < state.device_count(); ++n) {
      const DeviceId device{static_cast<std::uint32_t>(n)};
      if (!state.graph().allowed[lump][n]) continue;
      std::int64_t saved_ns = 0;
      for (const WireId wire : state.graph().wires[lump]) {
        if (state.members(wire, device) > 0) saved_ns += state.graph().crossing_ns[wire];
      }
      const std::tuple key(state.more_excess(lump, device), -saved_ns, state.load(device), device);
      if (!best.has_value() || key < *best) best = key;
    }
    state.move(lump, std::get<DeviceId>(*best));
  }
}

void refine_cut(CutState& state, const Run& run) {
  spread_excess(state);
  for (int pass = 0; pass < kMostPasses && !run.stopped(); ++pass) {
    const CutCost before = state.cost();
    if (!Pass(state).run(run)) return;
    const bool was_spread = state.cost().excess < before.excess;
    if (!was_spread && before.cut_ns - state.cost().cut_ns < before.cut_ns / kLeastPart) return;
  }
}

}  // namespace pardnn
