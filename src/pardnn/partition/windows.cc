#include "pardnn/partition/windows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

constexpr std::size_t kMostActive = 16;
constexpr std::int64_t kNowhere = kMaxQuantity;

}  // namespace

Windows::Windows(const Problem& problem, const Arcs& arcs)
    : problem_(problem),
      device_count_(problem.device_count()),
      walk_(problem, arcs),
      tail_ns_(problem.graph().ops().size(), 0),
      inside_(problem.graph().ops().size(), 0),
      unit_window_(problem.units().size(), 0),
      unit_inside_(problem.units().size(), 0),
      unit_settled_(problem.units().size(), 0),
      priority_(problem.graph().ops().size(), 0),
      missing_(problem.graph().ops().size(), 0),
      there_ns_(kMostActive * device_count_, 0),
      then_ns_(kMostActive * device_count_, 0) {
  for (const OpId op : problem.graph().ops()) {
    if (!problem.graph().is_every(op)) ++ordinary_count_;
  }
}

std::vector<std::size_t> Windows::window_ends(const Knobs& knobs) const {
  std::vector<std::size_t> ends;
  std::size_t end = knobs.offset > 0 ? knobs.offset : knobs.width;
  for (; end < ordinary_count_; end += knobs.width) ends.push_back(end);
  ends.push_back(ordinary_count_);
  return ends;
}

std::size_t Windows::count(const Knobs& knobs) const { return window_ends(knobs).size(); }

std::size_t Windows::pass(Lineup& lineup, const Knobs& knobs, Random& random, HeadRoom* room) {
  room_ = room;
  lineup_ = &lineup;
  walk_.restart(lineup);
  const std::vector<std::size_t> ends = window_ends(knobs);
  find_tails(ends);
  floor_ns_ = 0;
  std::size_t kept = 0, first = 0;
  for (std::size_t n = 0; n < ends.size(); ++n) {
    enter(first, ends[n], &after_ns_[n * device_count_]);
    walk_.mark();
    if (n < knobs.first || n - knobs.first >= knobs.count) {
      replay();
    } else if (try_window(knobs, random)) {
      ++kept;
    }
    first = ends[n];
  }
  lineup.step_ns = walk_.latest_ns();
  if (!problem_.rules().given_order) sort_by_start(lineup);
  return kept;
}

template <class TailOf>
std::int64_t Windows::after_ns(OpId op, TailOf tail_ns) const {
  const DeviceId device = lineup_->device[op];
  std::int64_t longest_ns = 0;
  for (const Arc& arc : walk_.readers(op)) {
    const std::int64_t crossing_ns = walk_.crossing_ns(arc.value, device, lineup_->device[arc.op]);
    longest_ns = std::max(longest_ns, crossing_ns + tail_ns(arc.op));
  }
  return longest_ns;
}

void Windows::find_tails(const std::vector<std::size_t>& ends) {
  const Lineup& lineup = *lineup_;
  after_ns_.assign(ends.size() * device_count_, 0);
  std::vector<std::int64_t> next_ns(device_count_, 0);
  std::size_t end = ends.size();
  for (std::size_t n = lineup.order.size(); n-- > 0;) {
    while (end > 0 && ends[end - 1] == n + 1) {
      std::copy(next_ns.begin(), next_ns.end(), row(after_ns_, --end));
    }
    const OpId op = lineup.order[n];
    const DeviceId device = lineup.device[op];
    const std::int64_t edges_ns = after_ns(op, [&](OpId reader) { return tail_ns_[reader]; });
    tail_ns_[op] = std::max(next_ns[index(device)], edges_ns) + problem_.duration_ns(op, device);
    next_ns[index(device)] = tail_ns_[op];
  }
}

void Windows::enter(std::size_t first, std::size_t last, const std::int64_t* next_ns) {
  first_ = first;
  last_ = last;
  next_ns_ = next_ns;
  longest_ns_ = 0;
  ++window_;
  for (std::size_t n = first; n < last; ++n) {
    const OpId op = lineup_->order[n];
    inside_[op] = window_;
    const UnitId unit = *problem_.unit(op);
    if (unit_window_[unit] != window_) {
      unit_window_[unit] = window_;
      unit_inside_[unit] = 0;
      unit_settled_[unit] = 0;
    }
    ++unit_inside_[unit];
  }
}

// Lists the open window anew; whether that was kept. The old order is walked first, to know what is
// to be beaten.
bool Windows::try_window(const Knobs& knobs, Random& random) {
  replay();
  const Outcome old = outcome();
  device_before_.clear();
  for (std::size_t n = first_; n < last_; ++n) {
    device_before_.push_back(lineup_->device[lineup_->order[n]]);
  }
  rank(knobs, random);
  walk_.back_to_mark();
  // A path past this window that is as long already takes nothing from what this one may be.
  const Outcome bound{std::max(floor_ns_, old.longest_ns), old.sum_ns};
  bool kept = list(knobs, bound.longest_ns);
  if (kept) {
    const Outcome now = outcome();
    kept = Outcome{std::max(floor_ns_, now.longest_ns), now.sum_ns} <= bound && has_room();
  }
  if (!kept) {
    undo();
    return false;
  }
  floor_ns_ = std::max(floor_ns_, longest_ns_);
  for (std::size_t n = first_; n < last_; ++n) {
    const OpId op = listed_[n - first_];
    lineup_->order[n] = op;
    lineup_->placement[*problem_.unit(op)] = lineup_->device[op];
  }
  return true;
}

// For the units that the window has moved.
bool Windows::has_room() {
  if (room_ == nullptr) return true;
  moved_.clear();
  for (std::size_t n = first_; n < last_; ++n) {
    const OpId op = lineup_->order[n];
    const UnitId unit = *problem_.unit(op);
    if (lineup_->placement[unit] == lineup_->device[op]) continue;
    lineup_->placement[unit] = lineup_->device[op];
    moved_.push_back(unit);
  }
  if (room_->takes(moved_, lineup_->placement)) return true;
  for (std::size_t n = first_; n < last_; ++n) {
    lineup_->placement[*problem_.unit(lineup_->order[n])] = device_before_[n - first_];
  }
  return false;
}

void Windows::undo() {
  walk_.back_to_mark();
  for (std::size_t n = first_; n < last_; ++n) {
    lineup_->device[lineup_->order[n]] = device_before_[n - first_];
  }
  replay();
}

void Windows::replay() {
  longest_ns_ = 0;
  for (std::size_t n = first_; n < last_; ++n) {
    put(lineup_->order[n], lineup_->device[lineup_->order[n]]);
  }
}

void Windows::put(OpId op, DeviceId device) {
  walk_.put(op, device);
  longest_ns_ = std::max(longest_ns_, lineup_->finish_ns[op]);
  for (const Arc& arc : walk_.readers(op)) {
    if (is_inside(arc.op)) continue;
    const std::int64_t there_ns = walk_.there_ns({op, arc.value}, lineup_->device[arc.op]);
    longest_ns_ = std::max(longest_ns_, there_ns + tail_ns_[arc.op]);
  }
}

Windows::Outcome Windows::outcome() const {
  Outcome outcome{longest_ns_, 0};
  for (const DeviceId device : problem_.devices()) {
    const std::int64_t through_ns = walk_.free_ns(device) + next_ns_[index(device)];
    outcome.longest_ns = std::max(outcome.longest_ns, through_ns);
    outcome.sum_ns += through_ns;
  }
  return outcome;
}

// The longest path from each op of the window to the end of the step, sequences not counted inside.
void Windows::rank(const Knobs& knobs, Random& random) {
  const Lineup& lineup = *lineup_;
  for (std::size_t n = last_; n-- > first_;) {
    const OpId op = lineup.order[n];
    std::int64_t rank_ns = after_ns(op, [&](OpId reader) { return tail_or_rank_ns(reader); });
    rank_ns += problem_.duration_ns(op, lineup.device[op]);
    if (knobs.noise_per_mille > 0) {
      rank_ns += rank_ns / 1000 * random.between(0, knobs.noise_per_mille);
    }
    priority_[op] = rank_ns;
  }
}

// False when some path is longer than the bound; what is listed is not whole then.
bool Windows::list(const Knobs& knobs, std::int64_t bound_ns) {
  longest_ns_ = 0;
  listed_.clear();
  active_.clear();
  waiting_.clear();
  find_first_ready(knobs);
  while (!active_.empty()) {
    const std::size_t chosen = most_urgent(knobs);
    const Slot next = active_[chosen];
    drop(chosen);
    put(next.op, next.device);
    if (longest_ns_ > bound_ns) return false;
    listed_.push_back(next.op);
    for (Slot& slot : active_) slot.is_stale |= slot.device == next.device;
    const UnitId unit = *problem_.unit(next.op);
    if (next.is_free && problem_.ops(unit).size() > 1) settle(unit, next.device);
    if (problem_.rules().given_order) {
      if (first_ + listed_.size() < last_) {
        activate(lineup_->order[first_ + listed_.size()], knobs);
      }
      continue;
    }
    for (const Arc& arc : walk_.readers(next.op)) {
      if (is_inside(arc.op) && --missing_[arc.op] == 0) make_ready(arc.op, knobs);
    }
    while (active_.size() < kMostActive && !waiting_.empty()) {
      std::pop_heap(waiting_.begin(), waiting_.end());
      const OpId op = waiting_.back().second;
      waiting_.pop_back();
      activate(op, knobs);
    }
  }
  return true;
}

void Windows::find_first_ready(const Knobs& knobs) {
  const std::vector<OpId>& order = lineup_->order;
  if (problem_.rules().given_order) {
    if (first_ < last_) activate(order[first_], knobs);
    return;
  }
  for (std::size_t n = first_; n < last_; ++n) {
    missing_[order[n]] = 0;
    for (const Arc& arc : walk_.producers(order[n]))
      missing_[order[n]] += is_inside(arc.op) ? 1 : 0;
  }
  for (std::size_t n = first_; n < last_; ++n) {
    if (missing_[order[n]] == 0) make_ready(order[n], knobs);
  }
}

void Windows::make_ready(OpId op, const Knobs& knobs) {
  if (active_.size() < kMostActive) {
    activate(op, knobs);
    return;
  }
  waiting_.emplace_back(priority_[op], op);
  std::push_heap(waiting_.begin(), waiting_.end());
}

void Windows::activate(OpId op, const Knobs& knobs) {
  const UnitId unit = *problem_.unit(op);
  const Slot slot{.op = op, .is_free = is_movable(unit) && !unit_settled_[unit]};
  std::int64_t* there = row(there_ns_, active_.size());
  std::int64_t* then = row(then_ns_, active_.size());
  for (const DeviceId device : problem_.devices()) {
    const bool may =
        slot.is_free ? problem_.is_allowed(unit, device) : device == lineup_->device[op];
    there[index(device)] = may ? 0 : kNowhere;
    then[index(device)] = 0;
    if (!may) continue;
    for (const Arc& arc : walk_.producers(op)) {
      std::int64_t at_ns = walk_.there_ns(arc, device);
      if (knobs.delay_quarters > 0) {
        const std::int64_t crossing_ns =
            walk_.crossing_ns(arc.value, lineup_->device[arc.op], device);
        at_ns = saturating_add(at_ns, crossing_ns / 4 * knobs.delay_quarters);
      }
      there[index(device)] = std::max(there[index(device)], at_ns);
    }
    if (!knobs.looks_ahead || !slot.is_free) continue;
    for (const Arc& arc : walk_.readers(op)) {
      const bool is_fixed = !is_inside(arc.op) || !is_movable(*problem_.unit(arc.op));
      const std::int64_t crossing_ns =
          is_fixed ? walk_.crossing_ns(arc.value, device, lineup_->device[arc.op]) : 0;
      then[index(device)] = std::max(then[index(device)], crossing_ns + tail_or_rank_ns(arc.op));
    }
  }
  active_.push_back(slot);
}

void Windows::choose_device(Slot& slot, const Knobs& knobs) {
  const auto number = static_cast<std::size_t>(&slot - active_.data());
  const std::int64_t* there = row(there_ns_, number);
  const std::int64_t* then = row(then_ns_, number);
  std::int64_t best_ns = std::numeric_limits<std::int64_t>::max();
  // Where no link leads to any device, what is put there passes every bound.
  slot.device = lineup_->device[slot.op];
  slot.start_ns = slot.finish_ns = kNowhere;
  for (const DeviceId device : problem_.devices()) {
    if (there[index(device)] == kNowhere) continue;
    const std::int64_t start_ns = std::max(there[index(device)], walk_.free_ns(device));
    const std::int64_t finish_ns = start_ns + problem_.duration_ns(slot.op, device);
    const std::int64_t key_ns = finish_ns + (knobs.looks_ahead ? then[index(device)] : 0);
    if (key_ns >= best_ns) continue;
    best_ns = key_ns;
    slot.device = device;
    slot.start_ns = start_ns;
    slot.finish_ns = finish_ns;
  }
  slot.is_stale = false;
}

// Of the slots that can start early enough, the one of greatest priority.
std::size_t Windows::most_urgent(const Knobs& knobs) {
  std::int64_t first_start_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t first_finish_ns = first_start_ns;
  for (Slot& slot : active_) {
    if (slot.is_stale) choose_device(slot, knobs);
    first_start_ns = std::min(first_start_ns, slot.start_ns);
    first_finish_ns = std::min(first_finish_ns, slot.finish_ns);
  }
  const std::int64_t latest_ns =
      first_start_ns + (first_finish_ns - first_start_ns) / 1000 * knobs.reach_per_mille;
  std::optional<std::size_t> chosen;
  for (std::size_t n = 0; n < active_.size(); ++n) {
    if (active_[n].start_ns > latest_ns) continue;
    const OpId op = active_[n].op;
    if (chosen.has_value()) {
      const OpId other = active_[*chosen].op;
      if (std::pair(-priority_[op], op) > std::pair(-priority_[other], other)) continue;
    }
    chosen = n;
  }
  return *chosen;
}

void Windows::drop(std::size_t number) {
  const std::size_t last = active_.size() - 1;
  if (number != last) {
    active_[number] = active_[last];
    std::copy_n(row(there_ns_, last), device_count_, row(there_ns_, number));
    std::copy_n(row(then_ns_, last), device_count_, row(then_ns_, number));
  }
  active_.pop_back();
}

// The rest of the unit follows its first op.
void Windows::settle(UnitId unit, DeviceId device) {
  unit_settled_[unit] = 1;
  for (const OpId member : problem_.ops(unit)) lineup_->device[member] = device;
  for (std::size_t n = 0; n < active_.size(); ++n) {
    if (*problem_.unit(active_[n].op) != unit) continue;
    active_[n].is_free = false;
    active_[n].is_stale = true;
    for (const DeviceId other : problem_.devices()) {
      if (other != device) row(there_ns_, n)[index(other)] = kNowhere;
    }
  }
}

}  // namespace pardnn
