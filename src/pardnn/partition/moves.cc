#include "pardnn/partition/moves.h"

#include <algorithm>
#include <array>

namespace pardnn {
namespace {

constexpr std::size_t kMemory = 64;  // tries after which a longer step is forgotten
constexpr std::array<std::int64_t, 6> kRooms = {0, 0, 5, 20, 50, 100};  // per mille
constexpr std::uint32_t kExchanges = 4;  // one try in so many begins with devices exchanged
constexpr std::size_t kMostHops = 16;    // ops of its device that an op passes in the line
constexpr std::size_t kMostReach = 40;   // of the line, on either side of an op
constexpr std::size_t kMostOps = 400;    // of a lump
constexpr std::array<std::size_t, 6> kLumps = {2, 3, 5, 8, 16, 32};  // units

}  // namespace

Moves::Moves(const Problem& problem, const Arcs& arcs)
    : problem_(problem),
      arcs_(arcs),
      clock_(problem, arcs),
      accepted_ns_(kMemory, 0),
      in_lump_(problem.units().size(), 0) {}

bool Moves::improve(Lineup& lineup, std::size_t work, Random& random, HeadRoom* room_there) {
  clock_.start(lineup);
  std::int64_t best_ns = clock_.step_ns();
  // Where moves that never lose gain no more, some loss is let through at first.
  const std::int64_t room = gained_ ? 0 : kRooms[random.below(kRooms.size())];
  std::int64_t from_ns = best_ns;
  if (!gained_ && random.below(kExchanges) == 0) {
    swap_devices(random);
    if (clock_.keeps(kMaxQuantity, room_there)) from_ns = std::max(from_ns, clock_.step_ns());
  }
  std::fill(accepted_ns_.begin(), accepted_ns_.end(), from_ns + from_ns / 1000 * room);
  bool has_changed = false;
  const std::size_t end = clock_.work() + work;
  for (std::size_t n = 0; clock_.work() < end; n = (n + 1) % kMemory) {
    propose(random);
    if (!clock_.keeps(std::max(clock_.step_ns(), accepted_ns_[n]), room_there)) continue;
    accepted_ns_[n] = clock_.step_ns();
    if (clock_.step_ns() >= best_ns) continue;
    best_ns = clock_.step_ns();
    clock_.write(lineup);
    has_changed = true;
  }
  gained_ = has_changed;
  return has_changed;
}

void Moves::propose(Random& random) {
  const OpId op = random_tight(random);
  const std::uint32_t kind = random.below(problem_.rules().given_order ? 12 : 16);
  if (kind < 5) {
    move_unit(op, random);
  } else if (kind < 11) {
    move_lump(op, random);
  } else if (kind < 12) {
    swap_units(op, random);
  } else if (kind < 15) {
    move_in_line(op, random);
  } else {
    move_unit_and_in_line(op, random);
  }
}

OpId Moves::random_tight(Random& random) const {
  const std::span<const OpId> tight = clock_.tight();
  return tight[random.below(static_cast<std::uint32_t>(tight.size()))];
}

// One of the op's producers or readers; null where it has none.
const Arc* Moves::random_arc(OpId op, Random& random) const {
  const std::span<const Arc> producers = arcs_.producers(op), readers = arcs_.readers(op);
  const std::size_t count = producers.size() + readers.size();
  if (count == 0) return nullptr;
  const std::size_t n = random.below(static_cast<std::uint32_t>(count));
  return n < producers.size() ? &producers[n] : &readers[n - producers.size()];
}

// Where a neighbour is, or any other than its own.
DeviceId Moves::random_device(OpId op, Random& random) const {
  const DeviceId from = clock_.device(op);
  if (random.below(3) > 0) {
    const Arc* arc = random_arc(op, random);
    if (arc != nullptr && clock_.device(arc->op) != from) return clock_.device(arc->op);
  }
  const auto others = static_cast<std::uint32_t>(problem_.device_count() - 1);
  const std::uint32_t other = random.below(others);
  return DeviceId{other < index(from) ? other : other + 1};
}

void Moves::move(UnitId unit, DeviceId to) {
  if (clock_.device(unit) != to && problem_.is_allowed(unit, to)) clock_.move(unit, to);
}

void Moves::move_unit(OpId op, Random& random) {
  move(*problem_.unit(op), random_device(op, random));
}

// With a unit of another device that runs at about the same time: both stay as busy as they were.
void Moves::swap_units(OpId op, Random& random) {
  const std::span<const OpId> order = clock_.order();
  const std::size_t at = clock_.position(op);
  const std::size_t first = at - std::min<std::size_t>(at, kMostReach);
  const std::size_t end = std::min(order.size(), at + kMostReach + 1);
  const OpId other = order[first + random.below(static_cast<std::uint32_t>(end - first))];
  const DeviceId here = clock_.device(op), there = clock_.device(other);
  if (here == there) return;
  const UnitId one = *problem_.unit(op), two = *problem_.unit(other);
  if (!problem_.is_allowed(one, there) || !problem_.is_allowed(two, here)) return;
  clock_.move(one, there);
  clock_.move(two, here);
}

// All units of two devices, from some place of the line on: the way to a better use of devices and
// links that differ.
void Moves::swap_devices(Random& random) {
  const auto devices = static_cast<std::uint32_t>(problem_.device_count());
  const DeviceId one{random.below(devices)};
  const DeviceId two{(index(one) + 1 + random.below(devices - 1)) % devices};
  const std::span<const OpId> order = clock_.order();
  const std::size_t first =
      random.below(2) == 0 ? 0 : random.below(static_cast<std::uint32_t>(order.size()));
  ++lump_number_;
  for (std::size_t n = first; n < order.size(); ++n) {
    const UnitId unit = *problem_.unit(order[n]);
    if (in_lump_[unit] == lump_number_) continue;
    in_lump_[unit] = lump_number_;
    const DeviceId device = clock_.device(order[n]);
    if (device == one) move(unit, two);
    if (device == two) move(unit, one);
  }
}

// To another device, and to any place of the line near its own that its edges allow.
void Moves::move_unit_and_in_line(OpId op, Random& random) {
  move_unit(op, random);
  const std::size_t at = clock_.position(op);
  std::size_t first = at - std::min<std::size_t>(at, kMostReach);
  std::size_t last = std::min(clock_.order().size() - 1, at + kMostReach);
  for (const Arc& arc : arcs_.producers(op)) first = std::max(first, clock_.position(arc.op) + 1);
  for (const Arc& arc : arcs_.readers(op)) last = std::min(last, clock_.position(arc.op) - 1);
  const std::size_t to = first + random.below(static_cast<std::uint32_t>(last - first + 1));
  if (to != at) clock_.shift(at, to);
}

// A lump grows from the op along edges on its device.
void Moves::move_lump(OpId op, Random& random) {
  const std::size_t units = kLumps[random.below(kLumps.size())];
  const DeviceId from = clock_.device(op);
  ++lump_number_;
  lump_.assign(1, *problem_.unit(op));
  in_lump_[lump_.front()] = lump_number_;
  std::size_t ops = problem_.ops(lump_.front()).size();
  DeviceId to = random_device(op, random);
  for (std::size_t n = 0; n < 4 * units && lump_.size() < units && ops < kMostOps; ++n) {
    const UnitId member = lump_[random.below(static_cast<std::uint32_t>(lump_.size()))];
    const std::span<const OpId> members = problem_.ops(member);
    const OpId one = members[random.below(static_cast<std::uint32_t>(members.size()))];
    const Arc* arc = random_arc(one, random);
    if (arc == nullptr) continue;
    const UnitId unit = *problem_.unit(arc->op);
    if (clock_.device(arc->op) != from) {
      if (random.below(4) == 0) to = clock_.device(arc->op);
      continue;
    }
    if (in_lump_[unit] == lump_number_) continue;
    in_lump_[unit] = lump_number_;
    lump_.push_back(unit);
    ops += problem_.ops(unit).size();
  }
  for (const UnitId unit : lump_) move(unit, to);
}

// The op goes before some ops of its device that it need not wait for, or one before it on its
// device goes behind it.
void Moves::move_in_line(OpId op, Random& random) {
  const std::span<const OpId> order = clock_.order();
  const DeviceId device = clock_.device(op);
  const std::size_t from = clock_.position(op);
  std::size_t hops = 1 + random.below(kMostHops);
  if (random.below(2) == 0) {
    std::size_t least = 0;
    for (const Arc& arc : arcs_.producers(op)) {
      least = std::max(least, clock_.position(arc.op) + 1);
    }
    std::size_t to = from;
    for (std::size_t n = from; n-- > least && hops > 0;) {
      if (clock_.device(order[n]) != device) continue;
      to = n;
      --hops;
    }
    if (to != from) clock_.shift(from, to);
    return;
  }
  std::size_t before = from;
  while (before > 0 && clock_.device(order[before - 1]) != device) --before;
  if (before-- == 0) return;
  for (const Arc& arc : arcs_.readers(order[before])) {
    if (clock_.position(arc.op) <= from) return;
  }
  clock_.shift(before, from);
}

}  // namespace pardnn
