// Best: simulates proposals, compares them by Score alone and keeps the better one.
#include "pardnn/partition/best.h"

#include <utility>

#include "pardnn/base/error.h"
#include "pardnn/partition/edges.h"

namespace pardnn {

Trial::Trial(const Problem& problem) : problem_(problem), simulator_(problem) {
  for (const DeviceId from : problem.devices()) {
    for (const DeviceId to : problem.devices()) {
      fully_linked_ &= from == to || problem.has_link(from, to);
    }
  }
}

// Rule T9: nothing is forwarded, so every edge that crosses needs a link of its own.
bool Trial::has_links_for(const UnitPlacement& placement) const {
  if (fully_linked_) return true;
  const Graph& graph = problem_.graph();
  bool found = true;
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    const DeviceId here = placement[*problem_.unit(op)];
    for_each_reader(graph, op, [&](OpId reader, std::optional<TensorId>) {
      const DeviceId there = placement[*problem_.unit(reader)];
      found &= here == there || problem_.has_link(here, there);
    });
  }
  return found;
}

bool Trial::prepare(const Proposal& proposal) {
  if (!has_links_for(proposal.placement)) return false;
  placement_ = expand(problem_, proposal.placement);
  sequences_ = sequences_of(problem_, placement_, proposal.order);
  return true;
}

std::optional<Score> Trial::score(const Proposal& proposal) {
  if (!prepare(proposal)) return std::nullopt;
  return simulator_.score(placement_, sequences_);
}

const Timeline* Trial::schedule(const Proposal& proposal) {
  if (!prepare(proposal)) return nullptr;
  return simulator_.schedule(placement_, sequences_);
}

std::optional<Score> Best::offer(std::string_view who, Proposal proposal) {
  const std::optional<Score> score = trial_.score(proposal);
  if (!score.has_value()) return std::nullopt;
  if (empty() || *score < score_) {
    proposal_ = std::move(proposal);
    score_ = *score;
    who_ = who;
  }
  return score;
}

Plan finished_plan(const Best& best, const Run& run) {
  const Problem& problem = best.problem();
  Plan plan;
  plan.placement = expand(problem, best.proposal().placement);
  plan.sequences = sequences_of(problem, plan.placement, best.proposal().order);
  std::optional<Prediction> prediction = predict(problem, plan.placement, plan.sequences);
  PARDNN_CHECK(prediction.has_value());
  plan.prediction = std::move(*prediction);
  plan.score = score_of(problem, plan.prediction);
  plan.algorithm = best.who();
  plan.seed = run.seed;
  return plan;
}

}  // namespace pardnn
