// Polish: shortens the step of placements by listing again with what the last listing taught.
#include "pardnn/partition/polish.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pardnn/partition/etf.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/pardnn.h"
#include "pardnn/partition/refine_critical_path.h"
#include "pardnn/partition/refine_ops.h"
#include "pardnn/partition/refinement.h"

namespace pardnn {
namespace {

constexpr std::array<std::int64_t, 4> kDelays = {0, 1, 2, 4};
constexpr std::size_t kMostRounds = 8;
constexpr std::size_t kOpsListed = 300'000;                      // over all rounds of one delay
constexpr std::array<std::int64_t, 4> kWeights = {2, 4, 8, 16};  // of crossings, when clustering
constexpr std::size_t kOpsClustered = 60'000;                    // largest graph clustered again
constexpr std::size_t kMostMoves = 80;
constexpr std::size_t kOpsRefined = 800'000;  // over all moves tried

void rerank(Best& best, const Times& times, std::int64_t delay, const Run& run) {
  const Problem& problem = best.problem();
  const std::size_t ops = std::max<std::size_t>(1, problem.graph().ops().size());
  const std::size_t rounds = std::min(kMostRounds, kOpsListed / ops);
  Table<OpId, std::int64_t> rank = bottom_levels(problem, times);
  for (std::size_t round = 0; round < rounds && !run.stopped(); ++round) {
    Proposal proposal =
        earliest_task_first(problem, times, rank, {.bytes_per_mille = {}, .delay = delay});
    rank = bottom_levels(problem, times, proposal.placement);
    best.offer("rerank", std::move(proposal));
  }
}

int refining_rounds(const Problem& problem) {
  const std::size_t ops = std::max<std::size_t>(1, problem.graph().ops().size());
  return static_cast<int>(std::min(kMostMoves, kOpsRefined / ops));
}

}  // namespace

void polish(Best& best, const Times& times, const Run& run) {
  for (const std::int64_t delay : kDelays) rerank(best, times, delay, run);
  if (best.problem().graph().ops().size() <= kOpsClustered) {
    for (const std::int64_t weight : kWeights) {
      if (run.stopped()) return;
      best.offer("cluster", cluster_and_refine(best.problem(), Times(best.problem(), weight), run));
    }
  }
  const int rounds = refining_rounds(best.problem());
  if (run.stopped() || rounds == 0) return;
  const Take take = best.score().fits() ? Take::kWithinLimit : Take::kLeastBytes;
  Refinement refinement(best.problem(), times, best.proposal(), take);
  refine_ops(refinement);
  follow_critical_path(refinement, rounds, run);
  best.offer("refine", refinement.take());
}

}  // namespace pardnn
