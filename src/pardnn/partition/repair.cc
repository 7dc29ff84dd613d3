// Memory repair: moves units off devices that overflow until every device fits.
#include "pardnn/partition/repair.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/partition/books.h"
#include "pardnn/partition/reorder.h"
#include "pardnn/partition/transfers.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

constexpr int kMostFruitless = 8;              // rounds in a row that were taken back
constexpr int kFewestToJudge = 3;              // rounds by whose pace it may be given up, and
constexpr int kPartToJudge = 8;                // so small a part of all, up to the fruitless ones
constexpr int kMostFailed = 64;                // candidates of one moment in a row
constexpr std::size_t kWorkOfBatch = 20;       // of the books, per op
constexpr std::size_t kOpsRepaired = 600'000;  // over all rounds, once anything fits
constexpr std::size_t kOpsRepairedAtMost = 2'400'000;  // the same, as long as nothing does
constexpr std::size_t kFewestRounds = 4;               // however large the graph

struct Candidate {
  std::vector<UnitId> units;
  std::int64_t added_ns, freed_bytes;

  // Least transfer time per byte first; ties more bytes, least ids.
  bool operator<(const Candidate& other) const {
    const Wide mine = Wide{added_ns} * other.freed_bytes;
    const Wide theirs = Wide{other.added_ns} * freed_bytes;
    return std::tie(mine, other.freed_bytes, units) < std::tie(theirs, freed_bytes, other.units);
  }
};

class Repair {
 public:
  Repair(const Problem& problem, const Times& times) : problem_(problem), times_(times) {
    departed_.assign(problem.units().size(), DeviceSet());
  }

  // Makes the moves of one batch in `books`, until so much work is done; false when nothing can
  // leave.
  bool batch(Books& books) {
    const std::size_t most_work = books.work() + kWorkOfBatch * problem_.graph().ops().size();
    for (const DeviceId device : by_overflow(books)) {
      bool moved = false;
      while (books.overflow_bytes(device) > 0 && books.work() < most_work &&
             relieve(books, device)) {
        moved = true;
      }
      if (moved) return true;
    }
    return false;
  }

 private:
  struct Target {
    DeviceId device;
    std::int64_t room_bytes;
  };

  // Devices that overflow, the largest first.
  std::vector<DeviceId> by_overflow(const Books& books) const {
    std::vector<DeviceId> devices;
    for (const DeviceId device : problem_.devices()) {
      if (books.overflow_bytes(device) > 0) devices.push_back(device);
    }
    std::stable_sort(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) {
      return books.overflow_bytes(a) > books.overflow_bytes(b);
    });
    return devices;
  }

  // Takes candidates of the fullest moment until that moment fits, or too many in a row would not
  // have gone; whether anything was moved.
  bool relieve(Books& books, DeviceId device) {
    const std::size_t moment = books.profile(device).fullest();
    std::vector<Candidate> candidates;
    UnitPlacement placement = books.placement();
    for (const Books::Leaving& leaving : books.freeable(device, moment)) {
      const std::vector<UnitId>& units = leaving.units;
      if (std::ranges::any_of(units, [&](UnitId unit) { return departed_[unit][index(device)]; })) {
        continue;
      }
      const std::optional<Target> to = target(books, units);
      if (!to.has_value() || to->room_bytes <= 0) continue;
      std::int64_t added_ns = 0;
      for (const UnitId unit : units) {
        const TransferChange change =
            transfer_change(problem_, times_, placement, unit, to->device);
        added_ns += change.added_ns - change.saved_ns;
        placement[unit] = to->device;
      }
      for (const UnitId unit : units) placement[unit] = device;
      candidates.push_back({units, added_ns, leaving.bytes});
    }
    std::sort(candidates.begin(), candidates.end());
    bool moved = false;
    int failed = 0;
    for (const Candidate& candidate : candidates) {
      if (books.profile(device).at(moment) <= books.limit_bytes(device)) break;
      if (failed == kMostFailed) break;
      const auto has_left = [&](UnitId unit) { return books.placement()[unit] != device; };
      if (std::ranges::any_of(candidate.units, has_left)) continue;
      const bool done = try_move(books, candidate.units, device, moment);
      failed = done ? 0 : failed + 1;
      moved |= done;
    }
    return moved;
  }

  // The device, allowed to all, with the most room while the one with least room is alive.
  std::optional<Target> target(const Books& books, const std::vector<UnitId>& units) {
    alive_.clear();
    for (const UnitId unit : units) alive_.push_back(books.alive(unit));
    std::optional<Target> best;
    for (const DeviceId device : problem_.devices()) {
      std::int64_t room = kMaxQuantity;
      bool may = true;
      for (std::size_t n = 0; n < units.size() && may; ++n) {
        may = device != books.placement()[units[n]] && problem_.is_allowed(units[n], device) &&
              !departed_[units[n]][index(device)];
        if (may) room = std::min(room, books.room_bytes(device, alive_[n]));
      }
      if (may && (!best.has_value() || room > best->room_bytes)) best = {device, room};
    }
    return best;
  }

  // Moves the units unless their target would overflow by it or nothing would be gained.
  bool try_move(Books& books, const std::vector<UnitId>& units, DeviceId from, std::size_t moment) {
    const std::optional<Target> to = target(books, units);
    if (!to.has_value() || to->room_bytes <= 0) return false;
    const std::int64_t there = books.overflow_bytes(to->device);
    const std::int64_t here = books.profile(from).at(moment);
    const Books::Mark before = books.mark();
    for (const UnitId unit : units) books.move(unit, to->device);
    if (books.overflow_bytes(to->device) <= there && books.profile(from).at(moment) < here) {
      for (const UnitId unit : units) departed_[unit].set(index(from));
      return true;
    }
    books.undo(before);
    return false;
  }

  const Problem& problem_;
  const Times& times_;
  Table<UnitId, DeviceSet> departed_;  // devices that the unit has left, or may not leave again
  std::vector<Books::Span> alive_;     // of the units that are to go
};

// Where any timing must fit, by what that takes more; its moment is not known, the peak's may do.
std::vector<Shortage> shortages(const Problem& problem, const Table<DeviceId, Peak>& peaks) {
  std::vector<Shortage> all;
  for (const DeviceId device : problem.devices()) {
    const std::int64_t over = counted_bytes(problem, peaks[device]) - problem.limit_bytes(device);
    if (over > 0) all.push_back({device, peaks[device].at_ns, over});
  }
  return all;
}

}  // namespace

Repaired repair_memory(Best& best, const Times& times, std::string_view who, Proposal proposal,
                       const Run& run, int most_rounds) {
  const Problem& problem = best.problem();
  std::optional<Score> score = best.offer(who, proposal);
  if (!score.has_value()) return {std::move(proposal)};
  Repair repair(problem, times);
  const bool may_reorder =
      !problem.rules().given_order && problem.rules().dispatch == Dispatch::kSequence;
  bool by_order = may_reorder;
  Table<OpId, char> tried(problem.graph().ops().size(), 0);
  const std::size_t ops = std::max<std::size_t>(1, proposal.order.size());
  const std::size_t most_ops = best.score().fits() ? kOpsRepaired : kOpsRepairedAtMost;
  most_rounds = std::min(most_rounds, static_cast<int>(std::clamp<std::size_t>(
                                          most_ops / ops, kFewestRounds, kRepairRounds)));
  int round = 0, fruitless = 0;
  bool on_trial = true;  // the proposal was the last to be simulated
  std::vector<std::int64_t> overflows{score->overflow_bytes};  // before each round, and now
  // At the pace of the last rounds those that are left would not take away half of it.
  const int judged = std::clamp(most_rounds / kPartToJudge, kFewestToJudge, kMostFruitless);
  const auto is_hopeless = [&] {
    if (round < judged) return false;
    const Wide gained = overflows[round - judged] - overflows[round];
    return 2 * gained * (most_rounds - round) < Wide{overflows[round]} * judged;
  };
  while (round < most_rounds && fruitless < kMostFruitless && !score->fits() && !is_hopeless() &&
         !run.stopped()) {
    if (!on_trial) best.trial().schedule(proposal);
    on_trial = true;
    const Timeline& timeline = best.trial().timeline();
    Proposal changed = proposal;
    if (by_order) {
      std::optional<std::vector<OpId>> order =
          make_room_by_order(problem, times, proposal.placement, timeline,
                             shortages(problem, best.trial().peaks()), tried);
      by_order = order.has_value();
      if (!by_order) continue;
      changed.order = std::move(*order);
    } else {
      const Table<DeviceId, Peak> peaks = best.trial().peaks();
      Books books(problem, times, proposal.placement, timeline, best.trial().lifetimes());
      for (const DeviceId device : problem.devices()) {
        books.set_aside(device, counted_bytes(problem, peaks[device]) - peaks[device].bytes);
      }
      if (!repair.batch(books)) break;
      changed.placement = books.placement();
    }
    ++round;
    ++fruitless;
    const std::optional<Score> reached = best.offer(who, changed);
    on_trial = reached.has_value() && reached->overflow_bytes < score->overflow_bytes;
    overflows.push_back(on_trial ? reached->overflow_bytes : score->overflow_bytes);
    if (!on_trial) continue;
    fruitless = 0;
    by_order = may_reorder;
    proposal = std::move(changed);
    score = reached;
  }
  return {std::move(proposal), round};
}

}  // namespace pardnn
