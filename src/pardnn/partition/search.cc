#include "pardnn/partition/search.h"

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "pardnn/problem/plenty.h"
#include "pardnn/partition/blind_moves.h"
#include "pardnn/partition/head_room.h"
#include "pardnn/partition/moves.h"
#include "pardnn/partition/repair.h"
#include "pardnn/partition/times.h"
#include "pardnn/partition/windows.h"

namespace pardnn {
namespace {

constexpr std::size_t kLanes = 2;
constexpr std::size_t kOpsWalked = 1'000'000;  // by one lane where nobody says how long
constexpr std::int64_t kMostSteps = 60;        // the same, for small graphs
constexpr std::int64_t kMostIdleSteps = 30;    // in which no lane found a shorter step
constexpr int kPasses = 4;                     // of one step in one direction
constexpr std::size_t kWorkOfMoves = 50;       // of one step of moves, per op
constexpr std::size_t kWorkOfFew = 1000;       // the same, where that is little in all
constexpr std::size_t kLittleWork = 100'000;
constexpr int kRoundsToMend = 6;            // of a step that was found and does not fit
constexpr std::size_t kOpsTried = 100'000;  // of one step of blind moves, over all tries
constexpr std::size_t kMostTries = 500;     // the same, for small graphs
constexpr std::size_t kLeastTries = 50;     // fewer are not worth a step

class Lane {
 public:
  Lane(const Problem& problem, const Times& times, const Arcs& arcs, bool is_exact,
       std::uint64_t seed)
      : problem_(problem),
        times_(times),
        is_exact_(is_exact),
        trial_(problem),
        windows_(problem, arcs),
        moves_(problem, arcs),
        blind_moves_(problem, arcs),
        random_(seed),
        is_scarce_(!memory_is_plenty(problem)) {
    const std::size_t tries = kOpsTried / std::max<std::size_t>(1, problem.graph().ops().size());
    if (is_scarce_ && tries >= kLeastTries) tries_ = std::min(kMostTries, tries);
  }

  void start(const Proposal& proposal, const Score& score) {
    room_.reset();
    lineup_.order = proposal.order;
    if (problem_.rules().given_order) {
      lineup_.order.assign(problem_.given_order().begin(), problem_.given_order().end());
    }
    lineup_.placement = proposal.placement;
    windows_.walk().time(lineup_);
    score_ = score;
  }

  void adopt(const Lane& other) {
    room_.reset();
    lineup_ = other.lineup_;
    score_ = other.score_;
  }

  void step() {
    candidate_ = lineup_;
    if (tries_ > 0 && random_.below(2) == 0) {
      move_blindly();
    } else if (random_.below(2) == 0) {
      move_ops();
    } else if (is_exact_) {
      walk_there_or_back();
    } else {
      try_some_windows();
    }
  }

  const Score& score() const { return score_; }
  Proposal proposal() const { return {lineup_.placement, lineup_.order}; }

 private:
  Knobs any_knobs() {
    constexpr std::array<std::size_t, 9> kWidths = {12, 25, 50, 100, 200, 400, 1000, 3000, 10'000};
    constexpr std::array<std::int64_t, 7> kDelays = {0, 0, 1, 2, 4, 8, 16};
    constexpr std::array<std::int64_t, 5> kReaches = {0, 0, 250, 500, 1000};
    constexpr std::array<std::int64_t, 4> kNoises = {0, 20, 100, 300};
    Knobs knobs;
    knobs.width = std::min(kWidths[random_.below(kWidths.size())],
                           std::max<std::size_t>(1, lineup_.order.size()));
    knobs.offset = random_.below(static_cast<std::uint32_t>(knobs.width));
    knobs.delay_quarters = kDelays[random_.below(kDelays.size())];
    knobs.reach_per_mille = kReaches[random_.below(kReaches.size())];
    knobs.noise_per_mille = kNoises[random_.below(kNoises.size())];
    knobs.looks_ahead = random_.below(3) > 0;
    return knobs;
  }

  // Nothing where memory is plenty.
  HeadRoom* room() {
    if (!is_scarce_) return nullptr;
    if (room_.has_value()) {
      room_->restart();
    } else {
      trial_.score(proposal());
      room_.emplace(problem_, times_, lineup_.placement, trial_);
    }
    return &*room_;
  }

  // No pass makes the step longer, and nothing else can become worse.
  void walk_there_or_back() {
    const bool mirrored = !problem_.rules().given_order && random_.below(2) == 0;
    if (mirrored) windows_.walk().mirror(candidate_);
    for (int pass = 0; pass < kPasses; ++pass) windows_.pass(candidate_, any_knobs(), random_);
    if (mirrored) windows_.walk().mirror(candidate_);
    std::swap(lineup_, candidate_);
    score_.step_ns = lineup_.step_ns;
  }

  void try_some_windows() {
    Knobs knobs = any_knobs();
    const std::size_t windows = windows_.count(knobs);
    if (share_ < kWhole) {
      knobs.count = std::max<std::size_t>(1, windows * share_ / kWhole);
      knobs.first = random_.below(static_cast<std::uint32_t>(windows));
    }
    const bool changed = windows_.pass(candidate_, knobs, random_, room()) > 0;
    if (!changed) return;
    const std::optional<Score> score = trial_.score({candidate_.placement, candidate_.order});
    if (mend(score)) return;
    if (score.has_value() && *score <= score_) {
      std::swap(lineup_, candidate_);
      room_.reset();
      score_ = *score;
      share_ = std::min(kWhole, share_ * 2);
    } else {
      share_ = std::max<std::size_t>(1, share_ / 2);
    }
  }

  // Repairs the candidate where that may give a shorter step that fits; whether it did.
  bool mend(const std::optional<Score>& score) {
    if (!score.has_value() || score->fits() || !score_.fits()) return false;
    if (score->step_ns >= score_.step_ns) return false;
    Best best(problem_);
    const Proposal broken{candidate_.placement, candidate_.order};
    repair_memory(best, times_, "search", broken, {}, kRoundsToMend);
    if (best.score() >= score_) return false;
    start(best.proposal(), best.score());
    return true;
  }

  void move_ops() {
    const std::size_t ops = lineup_.order.size();
    const std::size_t work = kWorkOfMoves * ops * slice_ / kWhole;
    const std::size_t least = std::min(kWorkOfFew * ops, kLittleWork);
    if (!moves_.improve(candidate_, std::max(least, work), random_, room())) return;
    const std::optional<Score> score = trial_.score({candidate_.placement, candidate_.order});
    if (mend(score)) return;
    if (!score.has_value() || *score > score_) {
      slice_ = std::max<std::size_t>(1, slice_ / 2);
      return;
    }
    slice_ = std::min(kWhole, slice_ * 2);
    windows_.walk().time(candidate_);
    if (!problem_.rules().given_order) sort_by_start(candidate_);
    std::swap(lineup_, candidate_);
    room_.reset();
    score_ = *score;
  }

  void move_blindly() {
    Proposal found = proposal();
    const Score score = blind_moves_.improve(found, score_, tries_, trial_, random_);
    if (score < score_) start(found, score);
  }

  static constexpr std::size_t kWhole = 1024;

  const Problem& problem_;
  const Times& times_;
  const bool is_exact_;
  Trial trial_;
  Windows windows_;
  Moves moves_;
  BlindMoves blind_moves_;
  std::size_t tries_ = 0;  // of a step of blind moves; 0: none is made
  Random random_;
  const bool is_scarce_;
  std::optional<HeadRoom> room_;  // where memory is scarce, once it is asked for
  Lineup lineup_, candidate_;
  Score score_;
  std::size_t share_ = kWhole;  // of the windows that a try may change
  std::size_t slice_ = kWhole;  // of the work that moves do before they are simulated
};

void step_all(std::vector<std::unique_ptr<Lane>>& lanes) {
  std::vector<std::future<void>> others;
  for (std::size_t n = 1; n < lanes.size(); ++n) {
    others.push_back(std::async(std::launch::async, [&lane = *lanes[n]] { lane.step(); }));
  }
  lanes.front()->step();
  for (std::future<void>& other : others) other.get();
}

}  // namespace

std::int64_t search(Best& best, std::int64_t bound_ns, const Run& run) {
  const Problem& problem = best.problem();
  const std::size_t ops = best.proposal().order.size();
  if (ops == 0 || problem.device_count() == 1) return 0;
  const bool is_timed = run.steps.has_value() || run.budget.has_value();
  const auto usual = static_cast<std::int64_t>(kOpsWalked / ops / kPasses);
  const std::int64_t most_steps = run.steps    ? *run.steps
                                  : run.budget ? kMaxQuantity
                                               : std::clamp<std::int64_t>(usual, 1, kMostSteps);
  const Arcs arcs(problem);
  const Times times(problem);
  const bool is_exact = !problem.rules().contention &&
                        problem.rules().dispatch == Dispatch::kSequence && best.score().fits() &&
                        memory_is_plenty(problem);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::size_t n = 0; n < kLanes; ++n) {
    lanes.push_back(
        std::make_unique<Lane>(problem, times, arcs, is_exact, run.seed * kLanes + n + 1));
    lanes.back()->start(best.proposal(), best.score());
  }
  std::int64_t step = 0, idle = 0;
  while (step < most_steps && !run.stopped() && (is_timed || idle < kMostIdleSteps)) {
    const Score before = lanes.front()->score();
    if (before.fits() && before.step_ns <= bound_ns) break;
    step_all(lanes);
    ++step;
    const auto winner =
        std::min_element(lanes.begin(), lanes.end(),
                         [](const auto& a, const auto& b) { return a->score() < b->score(); });
    for (const auto& lane : lanes) {
      if ((*winner)->score() < lane->score()) lane->adopt(**winner);
    }
    idle = (*winner)->score() < before ? 0 : idle + 1;
  }
  best.offer("search", lanes.front()->proposal());
  return step;
}

}  // namespace pardnn
