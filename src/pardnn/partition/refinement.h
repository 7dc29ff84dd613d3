// Refinement: a placement that passes of a row try to improve; each try is simulated and undone
// if the step became longer.
#pragma once

#include <optional>
#include <utility>

#include "pardnn/partition/best.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/times.h"

namespace pardnn {

class Refinement {
 public:
  // From the placement listed by the longest path to the end, transfers only where it crosses.
  // Whether it can run is to be asked first. Only steps are compared, memory is not looked at.
  Refinement(const Problem& problem, const Times& times, UnitPlacement placement);
  // From a proposal that can run, its order kept; scores are compared, so what fits stays so.
  // What is tried is listed by `take`.
  Refinement(const Problem& problem, const Times& times, Proposal proposal, Take take);

  bool runs() const { return timeline_.has_value(); }
  const UnitPlacement& placement() const { return proposal_.placement; }
  const Timeline& timeline() const { return *timeline_; }
  const Problem& problem() const { return problem_; }
  const Times& times() const { return times_; }
  std::int64_t step_ns() const { return timeline_->step_ns; }

  // Keeps the placement unless its step is longer, or its score worse; whether it was kept.
  bool offer(UnitPlacement placement);

  const Proposal& proposal() const { return proposal_; }
  Proposal take() { return std::move(proposal_); }

 private:
  Proposal list(UnitPlacement placement) const;

  const Problem& problem_;
  const Times& times_;
  const Take take_ = Take::kPriority;
  Trial trial_;
  Proposal proposal_;
  std::optional<Timeline> timeline_;
  std::optional<Score> score_;  // where scores are compared
};

}  // namespace pardnn
