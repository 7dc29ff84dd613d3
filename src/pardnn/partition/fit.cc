// Fit: when rows' answers do not fit, they and many placements and orders are repaired.
#include "pardnn/partition/fit.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "pardnn/base/ahead.h"
#include "pardnn/partition/chunks.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/fold.h"
#include "pardnn/partition/live_list.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/repair.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

constexpr std::size_t kMostOpsAllRepaired = 2000;
constexpr int kCuts = 4;                               // of one fold, each after the one before
constexpr std::size_t kOpsRepaired = 2'500'000;        // over all rounds of all repairs
constexpr std::size_t kOpsRepairedAtMost = 6'000'000;  // the same, as long as nothing fits
constexpr std::size_t kOpsListedLive = 500'000;        // over all live lists
constexpr std::size_t kOpsListed = 2'000'000;          // over all orders of given placements
constexpr int kFills = 5;                              // of live lists that differ in nothing else
constexpr Wide kGivenLess = 700;                       // per mille of what it was too full by
constexpr std::int64_t kAnyLess = 5;                   // per mille of its limit, besides
constexpr std::int64_t kLeastFill = 100;               // per mille
constexpr std::int64_t kWholeShare = 1'000'000;        // what all shares are brought back to

constexpr std::array<std::int64_t, 2> kShares = {1000,
                                                 1200};  // per mille of an even share of bytes

struct Start {
  std::string who;
  Proposal proposal;
  Score score;
};

class Fitter {
 public:
  Fitter(Best& best, const Times& times, const Run& run)
      : best_(best),
        problem_(best.problem()),
        times_(times),
        run_(run),
        orders_left_(kOpsListed / std::max<std::size_t>(1, best.problem().graph().ops().size())) {}

  // Tries the placement under several orders, as long as time is left for them, and keeps the best
  // as a start; answers it, nothing when there is none.
  const Start* add(std::string who, const UnitPlacement& placement) {
    std::optional<Start> leanest;
    const auto offer = [&](std::vector<OpId> order) {
      if (run_.stopped()) return;
      Proposal proposal{placement, std::move(order)};
      const std::optional<Score> score = best_.offer(who, proposal);
      if (!score.has_value() || (leanest && leanest->score <= *score)) return;
      leanest = Start{who, std::move(proposal), *score};
    };
    const Table<OpId, std::int64_t> rank = bottom_levels(problem_, times_, placement);
    Table<OpId, std::int64_t> near_end_first(rank.size(), 0);
    for (const OpId op : problem_.graph().ops()) near_end_first[op] = -rank[op];
    const std::array<std::pair<const Table<OpId, std::int64_t>*, Take>, 6> ways = {{
        {&rank, Take::kWithinLimit},
        {&near_end_first, Take::kWithinLimit},
        {&rank, Take::kPriority},
        {&rank, Take::kFreeing},
        {&near_end_first, Take::kPriority},
        {&near_end_first, Take::kLeastBytes},
    }};
    std::atomic<bool> enough = false;
    const auto list = [&](std::size_t n) -> std::vector<OpId> {
      if (enough) return {};
      const auto& [priority, take] = ways[n];
      return list_order(problem_, times_, placement, *priority, take);
    };
    done_ahead(std::min(ways.size(), orders_left_), list,
               [&](std::size_t, std::vector<OpId> order) {
                 if (enough) return;
                 --orders_left_;
                 offer(std::move(order));
                 enough = leanest.has_value() && is_far_behind(leanest->score);
               });
    if (!leanest.has_value()) return nullptr;
    starts_.push_back(std::move(*leanest));
    return &starts_.back();
  }

  // Whether something that fits is shorter by so much that another order or cut will not help.
  bool is_far_behind(const Score& score) const {
    const std::int64_t step_ns = best_.score().step_ns;
    return best_.score().fits() && score.step_ns >= saturating_add(step_ns, step_ns / 2);
  }

  // As it is; answers its score.
  std::optional<Score> add(std::string who, Proposal proposal) {
    const std::optional<Score> score = best_.offer(who, proposal);
    if (score.has_value()) starts_.push_back({std::move(who), std::move(proposal), *score});
    return score;
  }

  // The best first. Repair lengthens the step, so what is longer than a plan that fits is left.
  void repair_all() {
    std::stable_sort(starts_.begin(), starts_.end(),
                     [](const Start& a, const Start& b) { return a.score < b.score; });
    const std::size_t ops = std::max<std::size_t>(1, problem_.graph().ops().size());
    std::size_t rounds = 0;
    std::optional<Score> before;
    for (Start& start : starts_) {
      const bool is_known = start.score == before;  // the same plan, got in another way
      before = start.score;
      if (is_known) continue;
      const std::size_t all = best_.score().fits() ? kOpsRepaired : kOpsRepairedAtMost;
      if (run_.stopped() || rounds * ops >= all) return;
      if (start.score.fits()) continue;
      if (best_.score().fits() && start.score.step_ns >= best_.score().step_ns) continue;
      const Repaired repaired =
          repair_memory(best_, times_, start.who, std::move(start.proposal), run_);
      rounds += static_cast<std::size_t>(repaired.rounds);
    }
  }

 private:
  Best& best_;
  const Problem& problem_;
  const Times& times_;
  const Run& run_;
  std::size_t orders_left_;
  std::vector<Start> starts_;
};

// The share that would bring the device's peak to its limit if bytes grew with the share.
std::int64_t stretched(const Problem& problem, DeviceId device, const Peak& peak,
                       std::int64_t share) {
  const std::int64_t reserve = problem.reserve_bytes(device);
  const Wide room = std::max<std::int64_t>(1, problem.limit_bytes(device) - reserve);
  const Wide used = std::max<std::int64_t>(1, counted_bytes(problem, peak) - reserve);
  const Wide answer = Wide{std::max<std::int64_t>(1, share)} * room / used;
  return static_cast<std::int64_t>(std::clamp<Wide>(answer, 1, kWholeShare * 64));
}

// Recuts the fold a few times, each piece as much longer or shorter as its device has room.
void add_folds(Best& best, const Times& times, Fitter& fitter) {
  const Problem& problem = best.problem();
  const FoldedStep fold = fold_step(problem, times, best.trial());
  constexpr std::array<std::pair<int, int>, 3> kMixes = {{{1, 0}, {0, 1}, {1, 1}}};
  for (const auto& [time, bytes] : kMixes) {
    Shares shares = device_shares(problem, time, bytes);
    for (int cut = 0; cut < kCuts; ++cut) {
      const Start* start = fitter.add(
          "fold", cut_into_pieces(problem, fold.units, fold.weights, time, bytes, shares));
      if (start == nullptr || start->score.fits() || fitter.is_far_behind(start->score)) break;
      best.trial().schedule(start->proposal);
      const Table<DeviceId, Peak> peaks = best.trial().peaks();
      std::int64_t all = 0;
      for (const DeviceId device : problem.devices()) {
        shares[device] = stretched(problem, device, peaks[device], shares[device]);
        all += shares[device];
      }
      for (std::int64_t& share : shares)
        share = std::max<std::int64_t>(1, share * kWholeShare / all);
    }
  }
}

// A device that comes out too full is given as much less the next time.
void add_live_lists(Best& best, Fitter& fitter, const Times& times,
                    const Table<OpId, std::int64_t>& priority, LiveListOptions options,
                    std::size_t& lists_left, const Run& run) {
  const Problem& problem = best.problem();
  for (int fill = 0; fill < kFills && lists_left > 0 && !run.stopped(); ++fill) {
    --lists_left;
    const Proposal proposal = list_by_live_bytes(problem, times, priority, options);
    const std::optional<Score> score = fitter.add("live", proposal);
    if (!score.has_value() || score->fits() || fitter.is_far_behind(*score)) return;
    const Table<DeviceId, Peak> peaks = best.trial().peaks();
    for (const DeviceId device : problem.devices()) {
      const std::int64_t limit = std::max<std::int64_t>(1, problem.limit_bytes(device));
      const Wide over = counted_bytes(problem, peaks[device]) - limit;
      if (over <= 0) continue;
      std::int64_t& given = options.fill_per_mille[device];
      given = std::max(kLeastFill, given - static_cast<std::int64_t>(std::min<Wide>(
                                               given, over * kGivenLess / limit + kAnyLess)));
    }
  }
}

void add_live_lists(Best& best, Fitter& fitter, const Times& times, const Run& run) {
  const Problem& problem = best.problem();
  const Table<OpId, std::int64_t> rank = bottom_levels(problem, times);
  Table<OpId, std::int64_t> early_first = earliest_starts(problem);
  for (std::int64_t& at_ns : early_first) at_ns = -at_ns;
  std::size_t lists_left = kOpsListedLive / std::max<std::size_t>(1, rank.size()) + 1;
  for (const bool frees_first : {false, true}) {
    for (const std::int64_t delay : {0, 4}) {
      LiveListOptions options{
          .fill_per_mille = Table<DeviceId, std::int64_t>(problem.device_count(), 1000),
          .delay = delay,
          .frees_first = frees_first};
      add_live_lists(best, fitter, times, rank, options, lists_left, run);
      add_live_lists(best, fitter, times, early_first, options, lists_left, run);
    }
  }
}

// What is guessed of the step after repair: longer by the part of all memory that has to move.
std::int64_t repaired_step_ns(const Problem& problem, const Score& score) {
  Wide memory_bytes = 1;
  for (const DeviceId device : problem.devices()) memory_bytes += problem.limit_bytes(device);
  const Wide longer = Wide{score.step_ns} * score.overflow_bytes / memory_bytes;
  return static_cast<std::int64_t>(std::min<Wide>(score.step_ns + longer, kMaxQuantity));
}

}  // namespace

void repair_rows(Best& best, const Times& times, const std::vector<Proposed>& proposed,
                 const Run& run) {
  const Problem& problem = best.problem();
  std::vector<const Proposed*> rows;
  for (const Proposed& one : proposed) {
    if (one.overflows()) rows.push_back(&one);
  }
  const auto guess = [&](const Proposed* one) { return repaired_step_ns(problem, *one->score); };
  std::ranges::stable_sort(rows, {}, guess);
  const bool is_small = problem.graph().ops().size() <= kMostOpsAllRepaired;
  for (const Proposed* one : rows) {
    const std::int64_t step_ns = guess(one);
    const bool is_beaten = best.score().fits() && step_ns - step_ns / 11 >= best.score().step_ns;
    if (is_beaten && !is_small) return;
    repair_memory(best, times, one->who, one->proposal, run);
  }
}

void fit_into_memory(Best& best, const Times& times, const std::vector<Proposed>& proposed,
                     const Run& run) {
  Fitter fitter(best, times, run);
  add_live_lists(best, fitter, times, run);
  repair_rows(best, times, proposed, run);
  for (const Proposed& one : proposed) fitter.add("rows", one.proposal.placement);
  add_folds(best, times, fitter);
  const Table<OpId, std::int64_t> rank = bottom_levels(best.problem(), times);
  done_ahead(
      kShares.size(),
      [&](std::size_t n) {
        return earliest_task_first(best.problem(), times, rank, {.bytes_per_mille = kShares[n]});
      },
      [&](std::size_t, const Proposal& listed) { fitter.add("etf", listed.placement); });
  fitter.repair_all();
}

}  // namespace pardnn
