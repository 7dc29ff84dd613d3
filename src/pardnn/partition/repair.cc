// Memory repair: moves units off devices that overflow until every device fits.
#include "pardnn/partition/repair.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/partition/books.h"
#include "pardnn/partition/transfers.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

struct Candidate {
  UnitId unit;
  std::int64_t added_ns, freed_bytes;

  // Least transfer time per byte first; ties more bytes, least id.
  bool operator<(const Candidate& other) const {
    const Wide mine = Wide{added_ns} * other.freed_bytes;
    const Wide theirs = Wide{other.added_ns} * freed_bytes;
    return std::tie(mine, other.freed_bytes, unit) < std::tie(theirs, freed_bytes, other.unit);
  }
};

struct Move {
  UnitId unit;
  DeviceId from;
};

class Repair {
 public:
  Repair(const Problem& problem, const Times& times) : problem_(problem), times_(times) {
    departed_.assign(problem.units().size(), DeviceSet());
  }

  // The moves of one batch, already made in `books`: empty when nothing can leave.
  std::vector<Move> batch(Books& books) {
    std::vector<Move> moves;
    for (const DeviceId device : by_overflow(books)) {
      while (books.overflow_bytes(device) > 0) {
        const std::size_t before = moves.size();
        relieve(books, device, moves);
        if (moves.size() == before) break;
      }
      if (!moves.empty()) break;
    }
    return moves;
  }

 private:
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

  // Takes candidates of the fullest moment until that moment fits.
  void relieve(Books& books, DeviceId device, std::vector<Move>& moves) {
    const std::size_t moment = books.profile(device).fullest();
    std::vector<Candidate> candidates;
    for (const auto& [unit, bytes] : books.freeable(device, moment)) {
      if (departed_[unit][index(device)]) continue;
      const std::optional<DeviceId> to = target(books, unit);
      if (!to.has_value()) continue;
      const TransferChange change = transfer_change(problem_, times_, books.placement(), unit, *to);
      candidates.push_back({unit, change.added_ns - change.saved_ns, bytes});
    }
    std::sort(candidates.begin(), candidates.end());
    for (const Candidate& candidate : candidates) {
      if (books.profile(device).at(moment) <= problem_.limit_bytes(device)) return;
      if (try_move(books, candidate.unit, device, moment)) {
        departed_[candidate.unit].set(index(device));
        moves.push_back({candidate.unit, device});
      }
    }
  }

  // The allowed device with the most room while the unit is alive.
  std::optional<DeviceId> target(const Books& books, UnitId unit) const {
    std::optional<std::pair<std::int64_t, DeviceId>> best;
    for (const DeviceId device : problem_.devices()) {
      if (device == books.placement()[unit] || !problem_.is_allowed(unit, device)) continue;
      if (departed_[unit][index(device)]) continue;
      const std::int64_t room = books.room_bytes(unit, device);
      if (!best.has_value() || room > best->first) best.emplace(room, device);
    }
    if (!best.has_value()) return std::nullopt;
    return best->second;
  }

  // Moves the unit unless its target would overflow by it or nothing would be gained.
  bool try_move(Books& books, UnitId unit, DeviceId from, std::size_t moment) {
    const std::optional<DeviceId> to = target(books, unit);
    if (!to.has_value()) return false;
    const std::int64_t there = books.overflow_bytes(*to);
    const std::int64_t here = books.profile(from).at(moment);
    books.move(unit, *to);
    if (books.overflow_bytes(*to) <= there && books.profile(from).at(moment) < here) return true;
    books.move(unit, from);
    return false;
  }

  const Problem& problem_;
  const Times& times_;
  Table<UnitId, DeviceSet> departed_;  // devices that the unit has left, or may not leave again
};

}  // namespace

Repaired repair_memory(Best& best, const Times& times, std::string_view who, Proposal proposal,
                       const Run& run, int most_rounds) {
  const Problem& problem = best.problem();
  std::optional<Score> score = best.offer(who, proposal);
  if (!score.has_value()) return {std::move(proposal)};
  Repair repair(problem, times);
  int round = 0;
  for (; round < most_rounds && !score->fits() && !run.stopped(); ++round) {
    const Timeline* timeline = best.trial().schedule(proposal);
    Books books(problem, times, proposal.placement, *timeline, best.trial().lifetimes());
    if (repair.batch(books).empty()) break;
    Proposal moved{books.placement(), proposal.order};
    const std::optional<Score> reached = best.offer(who, moved);
    if (!reached.has_value() || reached->overflow_bytes >= score->overflow_bytes) continue;
    proposal = std::move(moved);
    score = reached;
  }
  return {std::move(proposal), round};
}

}  // namespace pardnn
