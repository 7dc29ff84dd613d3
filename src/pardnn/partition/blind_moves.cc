#include "pardnn/partition/blind_moves.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pardnn/base/integers.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

constexpr std::size_t kMemory = 32;       // tries after which a worse score is forgotten
constexpr std::int64_t kOfLimits = 8000;  // what the room for bytes is this part of
constexpr std::array<std::int64_t, 4> kRooms = {0, 20, 100, 300};  // per mille, at first

UnitId random_unit(const Problem& problem, Random& random) {
  return UnitId{random.below(static_cast<std::uint32_t>(problem.units().size()))};
}

}  // namespace

BlindMoves::BlindMoves(const Problem& problem, const Arcs& arcs)
    : problem_(problem),
      arcs_(arcs),
      accepted_(kMemory),
      position_(problem.graph().ops().size(), 0) {
  for (const DeviceId device : problem.devices()) {
    all_limits_bytes_ = saturating_add(all_limits_bytes_, problem.limit_bytes(device));
  }
}

Score BlindMoves::improve(Proposal& proposal, const Score& score, std::size_t tries, Trial& trial,
                          Random& random) {
  const std::int64_t room = kRooms[random.below(kRooms.size())];
  Score loose = score;
  loose.step_ns += loose.step_ns / 1000 * room;
  if (!score.fits() || random.below(2) == 0) {
    loose.overflow_bytes += static_cast<std::int64_t>(Wide{all_limits_bytes_} * room / kOfLimits);
  }
  std::fill(accepted_.begin(), accepted_.end(), loose);
  Proposal current = proposal;
  Score current_score = score, best_score = score;
  for (std::size_t n = 0; n < tries; ++n) {
    Proposal next = current;
    for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) change(next, random);
    const std::optional<Score> found = trial.score(next);
    Score& bar = accepted_[n % kMemory];
    if (!found.has_value() || *found > std::max(current_score, bar)) continue;
    current = std::move(next);
    current_score = bar = *found;
    if (current_score >= best_score) continue;
    best_score = current_score;
    proposal = current;
  }
  return best_score;
}

void BlindMoves::change(Proposal& proposal, Random& random) {
  const std::uint32_t kind = random.below(problem_.rules().given_order ? 2 : 4);
  if (kind == 0) {
    move_unit(proposal, random);
  } else if (kind == 1) {
    swap_units(proposal, random);
  } else {
    move_in_order(proposal, random);
  }
}

void BlindMoves::move_unit(Proposal& proposal, Random& random) const {
  const UnitId unit = random_unit(problem_, random);
  const DeviceId to{random.below(static_cast<std::uint32_t>(problem_.device_count()))};
  if (problem_.is_allowed(unit, to)) proposal.placement[unit] = to;
}

void BlindMoves::swap_units(Proposal& proposal, Random& random) const {
  const UnitId one = random_unit(problem_, random), two = random_unit(problem_, random);
  DeviceId &here = proposal.placement[one], &there = proposal.placement[two];
  if (problem_.is_allowed(one, there) && problem_.is_allowed(two, here)) std::swap(here, there);
}

void BlindMoves::move_in_order(Proposal& proposal, Random& random) {
  std::vector<OpId>& order = proposal.order;
  for (std::size_t n = 0; n < order.size(); ++n) position_[order[n]] = n;
  const std::size_t at = random.below(static_cast<std::uint32_t>(order.size()));
  std::size_t first = 0, last = order.size() - 1;
  for (const Arc& arc : arcs_.producers(order[at])) {
    first = std::max(first, position_[arc.op] + 1);
  }
  for (const Arc& arc : arcs_.readers(order[at])) last = std::min(last, position_[arc.op] - 1);
  const std::size_t to = first + random.below(static_cast<std::uint32_t>(last - first + 1));
  const auto place = [&](std::size_t n) { return order.begin() + static_cast<std::ptrdiff_t>(n); };
  if (to < at) {
    std::rotate(place(to), place(at), place(at + 1));
  } else {
    std::rotate(place(at), place(at + 1), place(to + 1));
  }
}

}  // namespace pardnn
