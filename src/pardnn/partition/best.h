// Best: simulates proposals, compares them by Score alone and keeps the better one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pardnn/plan/plan.h"
#include "pardnn/partition/rows.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {

// A proposal run on paper. What the answer refers to is good until the next call.
class Trial {
 public:
  explicit Trial(const Problem& problem);

  // Nothing when the proposal needs a link that is not there, or its order and the edges form a
  // cycle.
  std::optional<Score> score(const Proposal& proposal);
  // Times alone, memory not looked at.
  const Timeline* schedule(const Proposal& proposal);
  // Of what was scheduled or scored last.
  const Timeline& timeline() { return simulator_.timeline(); }
  Table<DeviceId, Peak> peaks() { return simulator_.peaks(problem_.rules().any_timing); }
  const std::vector<Buffer>& lifetimes() { return simulator_.lifetimes(); }

 private:
  bool has_links_for(const UnitPlacement& placement) const;
  bool prepare(const Proposal& proposal);

  const Problem& problem_;
  Simulator simulator_;
  bool fully_linked_ = true;
  Placement placement_;
  Sequences sequences_;
};

class Best {
 public:
  explicit Best(const Problem& problem) : problem_(problem), trial_(problem) {}

  // Keeps the proposal when it is better than what is kept; an equal one does not replace it.
  // Answers its score; nothing when it cannot run.
  std::optional<Score> offer(std::string_view who, Proposal proposal);

  bool empty() const { return !proposal_.has_value(); }
  const Proposal& proposal() const { return *proposal_; }
  const Score& score() const { return score_; }
  const std::string& who() const { return who_; }
  Trial& trial() { return trial_; }
  const Problem& problem() const { return problem_; }

 private:
  const Problem& problem_;
  Trial trial_;
  std::optional<Proposal> proposal_;
  Score score_;
  std::string who_;
};

// What is kept, as a plan with its prediction; without a bound, and not confirmed.
Plan finished_plan(const Best& best, const Run& run);

}  // namespace pardnn
