// Refinement: a placement that passes of a row try to improve.
#include "pardnn/partition/refinement.h"

#include "pardnn/partition/orders.h"

namespace pardnn {

Refinement::Refinement(const Problem& problem, const Times& times, UnitPlacement placement)
    : problem_(problem), times_(times), trial_(problem), proposal_(list(std::move(placement))) {
  if (const Timeline* timeline = trial_.schedule(proposal_)) timeline_ = *timeline;
}

Refinement::Refinement(const Problem& problem, const Times& times, Proposal proposal, Take take)
    : problem_(problem),
      times_(times),
      take_(take),
      trial_(problem),
      proposal_(std::move(proposal)),
      score_(trial_.score(proposal_)) {
  PARDNN_CHECK(score_.has_value());
  timeline_ = trial_.timeline();
}

Proposal Refinement::list(UnitPlacement placement) const {
  const auto priority = bottom_levels(problem_, times_, placement);
  std::vector<OpId> order = list_order(problem_, times_, placement, priority, take_);
  return {std::move(placement), std::move(order)};
}

bool Refinement::offer(UnitPlacement placement) {
  Proposal proposal = list(std::move(placement));
  if (score_.has_value()) {
    const std::optional<Score> score = trial_.score(proposal);
    if (!score.has_value() || *score > *score_) return false;
    score_ = score;
    timeline_ = trial_.timeline();
  } else {
    const Timeline* timeline = trial_.schedule(proposal);
    if (timeline == nullptr) return false;
    if (timeline_.has_value() && timeline->step_ns > timeline_->step_ns) return false;
    timeline_ = *timeline;
  }
  proposal_ = std::move(proposal);
  return true;
}

}  // namespace pardnn
