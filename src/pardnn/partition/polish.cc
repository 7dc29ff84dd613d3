// Polish: shortens the step of placements by listing again with what the last listing taught.
#include "pardnn/partition/polish.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "pardnn/base/ahead.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/pardnn.h"

namespace pardnn {
namespace {

constexpr std::array<std::int64_t, 4> kDelays = {0, 1, 2, 4};
constexpr std::size_t kMostRounds = 8;
constexpr std::size_t kOpsListed = 300'000;                      // over all rounds of one delay
constexpr std::array<std::int64_t, 4> kWeights = {2, 4, 8, 16};  // of crossings, when clustering
constexpr std::size_t kOpsClustered = 60'000;                    // largest graph clustered again

// The proposals of all rounds; each round learns from the placement of the one before.
std::vector<Proposal> rerank(const Problem& problem, const Times& times, std::int64_t delay,
                             const Run& run) {
  const std::size_t ops = std::max<std::size_t>(1, problem.graph().ops().size());
  const std::size_t rounds = std::min(kMostRounds, kOpsListed / ops);
  std::vector<Proposal> found;
  if (rounds == 0) return found;
  Table<OpId, std::int64_t> rank = bottom_levels(problem, times);
  while (found.size() < rounds && !run.stopped()) {
    found.push_back(
        earliest_task_first(problem, times, rank, {.bytes_per_mille = {}, .delay = delay}));
    if (found.size() < rounds) rank = bottom_levels(problem, times, found.back().placement);
  }
  return found;
}

}  // namespace

void polish(Best& best, const Times& times, const Run& run) {
  const Problem& problem = best.problem();
  done_ahead(
      kDelays.size(), [&](std::size_t n) { return rerank(problem, times, kDelays[n], run); },
      [&](std::size_t, std::vector<Proposal> found) {
        for (Proposal& proposal : found) best.offer("rerank", std::move(proposal));
      });
  if (problem.graph().ops().size() <= kOpsClustered && !run.stopped()) {
    done_ahead(
        kWeights.size(),
        [&](std::size_t n) {
          return cluster_and_refine(problem, Times(problem, kWeights[n]), run);
        },
        [&](std::size_t, Proposal found) { best.offer("cluster", std::move(found)); });
  }
}

}  // namespace pardnn
