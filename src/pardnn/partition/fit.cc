// Fit: when no row's answer fits, many placements and orders, each repaired, until one does.
#include "pardnn/partition/fit.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "pardnn/partition/chunks.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/fold.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/repair.h"

namespace pardnn {
namespace {

struct Start {
  std::string who;
  Proposal proposal;
  Score score;
};

class Fitter {
 public:
  Fitter(Best& best, const Times& times, const Run& run)
      : best_(best), problem_(best.problem()), times_(times), run_(run) {}

  void add(std::string who, UnitPlacement placement) {
    if (run_.stopped()) return;
    const Table<OpId, std::int64_t> rank = bottom_levels(problem_, times_, placement);
    Table<OpId, std::int64_t> leaf_first(rank.size(), 0);
    for (const OpId op : problem_.graph().ops()) leaf_first[op] = -rank[op];
    for (const Take take : {Take::kPriority, Take::kFreeing, Take::kWithinLimit}) {
      add(who, {placement, list_order(problem_, times_, placement, rank, take)});
    }
    for (const Take take : {Take::kPriority, Take::kWithinLimit, Take::kLeastBytes}) {
      add(who, {placement, list_order(problem_, times_, placement, leaf_first, take)});
    }
  }

  void add(std::string who, Proposal proposal) {
    if (const auto score = best_.offer(who, proposal)) {
      starts_.push_back({std::move(who), std::move(proposal), *score});
    }
  }

  void repair_all() {
    std::stable_sort(starts_.begin(), starts_.end(),
                     [](const Start& a, const Start& b) { return a.score < b.score; });
    for (Start& start : starts_) {
      if (start.score.fits()) continue;
      if (run_.stopped()) return;
      repair_memory(best_, times_, start.who, std::move(start.proposal), run_);
    }
  }

 private:
  Best& best_;
  const Problem& problem_;
  const Times& times_;
  const Run& run_;
  std::vector<Start> starts_;
};

}  // namespace

void fit_into_memory(Best& best, const Times& times, std::vector<Proposal> starts, const Run& run) {
  const Problem& problem = best.problem();
  Fitter fitter(best, times, run);
  const FoldedStep fold = fold_step(problem, times, best.trial());
  constexpr std::array<std::pair<int, int>, 3> mixes = {{{1, 0}, {0, 1}, {1, 1}}};
  for (const auto& [time, bytes] : mixes) {
    fitter.add("fold", cut_into_pieces(problem, fold.units, fold.weights, time, bytes,
                                       device_shares(problem, time, bytes)));
  }
  for (Proposal& start : starts) fitter.add("rows", std::move(start.placement));
  fitter.repair_all();
}

}  // namespace pardnn
