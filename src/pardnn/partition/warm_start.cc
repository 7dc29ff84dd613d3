// Warm start: a plan made from one made before, of which few ops move.
#include "pardnn/partition/warm_start.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "pardnn/plan/bound.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/byte_caps.h"
#include "pardnn/partition/confirm.h"
#include "pardnn/partition/edges.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/refine_critical_path.h"
#include "pardnn/partition/repair.h"
#include "pardnn/partition/search.h"
#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

constexpr std::string_view kWho = "from";
constexpr std::size_t kMostMoves = 40;
constexpr std::size_t kOpsRefined = 400'000;  // over all moves tried

// Where most of its members were; ties to the least device. Nothing for a unit that is new, or that
// may not be there any more.
PlacedUnits old_units(const Problem& problem, const OldPlan& old) {
  PlacedUnits placed(problem.units().size());
  for (const UnitId unit : problem.units()) {
    Table<DeviceId, std::size_t> votes(problem.device_count(), 0);
    for (const OpId op : problem.ops(unit)) {
      if (old.ops[op]) ++votes[*old.ops[op]];
    }
    for (const VariableId variable : problem.variables(unit)) {
      if (old.variables[variable]) ++votes[*old.variables[variable]];
    }
    std::size_t most = 0;
    for (const DeviceId device : problem.devices()) {
      if (votes[device] <= most || !problem.is_allowed(unit, device)) continue;
      most = votes[device];
      placed[unit] = device;
    }
  }
  return placed;
}

// The old order; what is new comes right after what it reads.
std::vector<OpId> old_order(const Problem& problem, const OldPlan& old) {
  const Graph& graph = problem.graph();
  Table<OpId, std::int64_t> moment(graph.ops().size(), 0);
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    moment[op] = old.start_ns[op].value_or(0);
    for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId>) {
      moment[op] = std::max(moment[op], moment[producer] + 1);
    });
  }
  return order_by(graph, moment);
}

void offer_orders(Best& best, const Times& times, const OldPlan& old, Proposal listed) {
  const Problem& problem = best.problem();
  const UnitPlacement placement = listed.placement;
  best.offer(kWho, {placement, old_order(problem, old)});
  best.offer(kWho, std::move(listed));
  const Table<OpId, std::int64_t> rank = bottom_levels(problem, times, placement);
  for (const Take take : {Take::kPriority, Take::kWithinLimit, Take::kLeastBytes}) {
    best.offer(kWho, {placement, list_order(problem, times, placement, rank, take)});
  }
}

// The old placement, what is new placed beside it.
void stay(Best& best, const Times& times, const OldPlan& old, const Run& run) {
  const Problem& problem = best.problem();
  const PlacedUnits placed = old_units(problem, old);
  const bool is_whole =
      std::ranges::all_of(placed, [](const auto& unit) { return unit.has_value(); });
  const Table<OpId, std::int64_t> rank = bottom_levels(problem, times);
  const auto listed = [&](EtfOptions options) {
    options.placed = &placed;
    Proposal proposal = earliest_task_first(problem, times, rank, options);
    // Units without ops, too, are where they were.
    for (const UnitId unit : problem.units()) {
      if (placed[unit]) proposal.placement[unit] = *placed[unit];
    }
    return proposal;
  };
  offer_orders(best, times, old, listed({}));
  const bool is_short = best.empty() || !best.score().fits();
  if (is_short && !is_whole) {
    offer_orders(best, times, old, listed({.bytes_per_mille = cap_per_mille(problem)}));
  }
  if (!best.empty() && !best.score().fits()) {
    repair_memory(best, times, kWho, best.proposal(), run);
  }
}

// Some moves that shorten the step.
void refine(Best& best, const Times& times, const Run& run) {
  const std::size_t ops = std::max<std::size_t>(1, best.problem().graph().ops().size());
  const auto rounds = static_cast<int>(std::min(kMostMoves, kOpsRefined / ops));
  if (rounds == 0 || run.stopped()) return;
  const Take take = best.score().fits() ? Take::kWithinLimit : Take::kLeastBytes;
  Refinement refinement(best.problem(), times, best.proposal(), take);
  follow_critical_path(refinement, rounds, run);
  best.offer(kWho, refinement.take());
}

bool is_worth_moving(const Score& now, const Score& then) {
  __extension__ using Wide = __int128;
  if (then.overflow_bytes != now.overflow_bytes) return then.overflow_bytes < now.overflow_bytes;
  return Wide{then.step_ns} * 1000 < Wide{now.step_ns} * (1000 - kWorthMovingPerMille);
}

Plan confirmed(const Best& best, std::int64_t bound_ns, std::int64_t steps, const Run& run) {
  Plan plan = finished_plan(best, run);
  plan.bound_ns = bound_ns;
  plan.steps = steps;
  confirm(best.problem(), plan);
  return plan;
}

}  // namespace

Plan plan_from(const Problem& problem, const OldPlan& old, const Run& asked) {
  Run run = asked;
  if (run.budget && !run.deadline) {
    run.deadline = std::chrono::steady_clock::now() + *run.budget;
  }
  const Times times(problem);
  Best kept(problem);
  stay(kept, times, old, run);
  if (kept.empty()) return make_plan(problem, "auto", run);
  if (old.is_of_this_problem && kept.score().fits() && !run.budget && !run.steps) {
    return confirmed(kept, lower_bound_ns(problem), 0, run);
  }
  Best near(problem);
  near.offer(kWho, kept.proposal());
  refine(near, times, run);
  const std::vector<Start> starts{{std::string(kWho), kept.proposal()},
                                  {std::string(kWho), near.proposal()}};
  const Plan found = make_plan(problem, "auto", run, starts);
  const Best& here = is_worth_moving(kept.score(), near.score()) ? near : kept;
  if (is_worth_moving(here.score(), found.score)) {
    // The same search from here moves fewer ops than one from anywhere.
    search(near, found.bound_ns, run);
    if (is_worth_moving(near.score(), found.score)) return found;
    return confirmed(near, found.bound_ns, found.steps, run);
  }
  return confirmed(here, found.bound_ns, found.steps, run);
}

Moved moves_from(const Problem& problem, const OldPlan& old, const Plan& plan) {
  Moved moves;
  for (const OpId op : problem.graph().ops()) {
    if (problem.graph().is_every(op)) continue;
    if (!old.start_ns[op]) {
      ++moves.added;
      continue;
    }
    ++moves.matched;
    if (plan.placement.ops[op] != old.ops[op]) ++moves.moved;
  }
  moves.gone = old.op_count - moves.matched;
  return moves;
}

}  // namespace pardnn
