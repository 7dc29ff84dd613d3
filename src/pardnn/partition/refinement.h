// Refinement: a placement that passes of a row try to improve; each try is simulated and undone
// if the step became longer.
#pragma once

#include <optional>
#include <utility>

#include "pardnn/partition/best.h"
#include "pardnn/partition/times.h"

namespace pardnn {

class Refinement {
 public:
  // From the placement listed by the longest path to the end, transfers only where it crosses.
  // Whether it can run is to be asked first.
  Refinement(const Problem& problem, const Times& times, UnitPlacement placement);

  bool runs() const { return timeline_.has_value(); }
  const UnitPlacement& placement() const { return proposal_.placement; }
  // Of the placement kept, listed by the longest path to the end, transfers only where it crosses.
  const Timeline& timeline() const { return *timeline_; }
  const Problem& problem() const { return problem_; }
  const Times& times() const { return times_; }

  // Keeps the placement unless its step is longer; whether it was kept.
  bool offer(UnitPlacement placement);
  // Whether it would be strictly shorter is asked by passes that repeat.
  std::int64_t step_ns() const { return timeline_->step_ns; }

  Proposal take() { return std::move(proposal_); }

 private:
  Proposal list(UnitPlacement placement) const;

  const Problem& problem_;
  const Times& times_;
  Trial trial_;
  Proposal proposal_;
  std::optional<Timeline> timeline_;
};

}  // namespace pardnn
