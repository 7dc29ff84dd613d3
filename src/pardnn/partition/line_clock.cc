#include "pardnn/partition/line_clock.h"

#include <algorithm>
#include <limits>

#include "pardnn/partition/times.h"
#include "pardnn/sim/device_mask.h"

namespace pardnn {
namespace {

constexpr std::size_t kLeastBlock = 32;  // ops
constexpr int kMostUntailed = 8;         // changes without a longer or shorter step between tails
constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

}  // namespace

LineClock::LineClock(const Problem& problem, const Arcs& arcs)
    : problem_(problem),
      arcs_(arcs),
      device_count_(problem.device_count()),
      state_size_(device_count_ + problem.machine().channels.size()),
      contention_(problem.rules().contention),
      // A block's state takes about as much memory as its ops do.
      block_size_(std::max(kLeastBlock, state_size_)),
      position_(problem.graph().ops().size(), 0),
      device_(problem.graph().ops().size(), DeviceId{}),
      finish_ns_(problem.graph().ops().size(), 0),
      copy_ns_(arcs.value_count() * device_count_, 0),
      tail_ns_(problem.graph().ops().size(), 0),
      moved_in_(problem.graph().ops().size(), 0),
      free_ns_(state_size_, 0) {}

void LineClock::start(const Lineup& lineup) {
  order_ = lineup.order;
  placement_ = lineup.placement;
  for (std::size_t n = 0; n < order_.size(); ++n) {
    position_[order_[n]] = n;
    device_[order_[n]] = placement_[*problem_.unit(order_[n])];
  }
  blocks_.assign(order_.size() / block_size_ + 1, {});
  states_.assign(blocks_.size() * state_size_, 0);
  changes_.clear();
  first_touched_ = 0;
  tails_from_ = last_touched_ = order_.size();
  step_ns_ = *walk(kMaxQuantity);
  settle();
  find_tails();
  begin_change();
}

void LineClock::write(Lineup& lineup) const {
  lineup.order = order_;
  lineup.placement = placement_;
}

void LineClock::touch(std::size_t first, std::size_t last) {
  first_touched_ = std::min(first_touched_, first);
  last_touched_ = std::max(last_touched_, last);
}

void LineClock::move(UnitId unit, DeviceId to) {
  for (const OpId op : problem_.ops(unit)) {
    std::size_t first = position_[op];
    // Its inputs will be sent elsewhere, and may have to wait for each other then.
    for (const Arc& arc : arcs_.producers(op)) first = std::min(first, position_[arc.op]);
    touch(first, position_[op]);
    tails_from_ = std::min(tails_from_, position_[op]);
    moved_in_[op] = change_;
    device_[op] = to;
  }
  changes_.push_back({.is_shift = false, .unit = unit, .device = placement_[unit]});
  placement_[unit] = to;
}

void LineClock::shift(std::size_t from, std::size_t to) {
  touch(std::min(from, to), std::max(from, to));
  changes_.push_back({.is_shift = true, .from = from, .to = to});
  rotate(from, to);
}

void LineClock::rotate(std::size_t from, std::size_t to) {
  const auto at = [&](std::size_t n) { return order_.begin() + static_cast<std::ptrdiff_t>(n); };
  if (from > to) {
    std::rotate(at(to), at(from), at(from + 1));
  } else {
    std::rotate(at(from), at(from + 1), at(to + 1));
  }
  for (std::size_t n = std::min(from, to); n <= std::max(from, to); ++n) position_[order_[n]] = n;
}

void LineClock::undo_change() {
  for (const OldTime& old : old_times_) finish_ns_[old.op] = old.ns;
  for (const OldCopy& old : old_copies_) copy_ns_[old.slot] = old.ns;
  while (!changes_.empty()) {
    const Change& change = changes_.back();
    if (change.is_shift) {
      rotate(change.to, change.from);
    } else {
      placement_[change.unit] = change.device;
      for (const OpId op : problem_.ops(change.unit)) device_[op] = change.device;
    }
    changes_.pop_back();
  }
  begin_change();
}

void LineClock::begin_change() {
  ++change_;
  first_touched_ = tails_from_ = kNothing;
  last_touched_ = 0;
}

bool LineClock::keeps(std::int64_t most_ns, HeadRoom* room) {
  ++work_;
  if (changes_.empty()) return false;
  // The tail of an op that another passed began with that other.
  const auto is_shift = [](const Change& change) { return change.is_shift; };
  if (std::ranges::any_of(changes_, is_shift)) tails_from_ = last_touched_;
  const std::optional<std::int64_t> step_ns = walk(most_ns);
  if (!step_ns.has_value() || !takes(room)) {
    undo_change();
    return false;
  }
  const bool is_other = *step_ns != step_ns_;
  step_ns_ = *step_ns;
  changes_.clear();
  settle();
  if (is_other || ++untailed_ == kMostUntailed) find_tails();
  begin_change();
  return true;
}

bool LineClock::takes(HeadRoom* room) {
  if (room == nullptr) return true;
  moved_.clear();
  for (const Change& change : changes_) {
    if (!change.is_shift) moved_.push_back(change.unit);
  }
  return room->takes(moved_, placement_);
}

bool LineClock::is_as_before(std::size_t block) const {
  return std::equal(free_ns_.begin(), free_ns_.end(), state(block));
}

// The step, or nothing once it is known to be longer.
std::optional<std::int64_t> LineClock::walk(std::int64_t most_ns) {
  old_times_.clear();
  old_copies_.clear();
  new_states_.clear();
  new_latest_ns_.clear();
  const std::size_t first_block = first_touched_ / block_size_;
  std::copy_n(state(first_block), state_size_, free_ns_.begin());
  unsettled_until_ = last_touched_;
  std::int64_t latest_ns = blocks_[first_block].before_ns;
  for (std::size_t n = first_block * block_size_; n < order_.size(); ++n) {
    if (n % block_size_ == 0) {
      const std::size_t block = n / block_size_;
      if (n > unsettled_until_ && is_as_before(block)) {
        latest_ns = std::max(latest_ns, blocks_[block].from_ns);
        if (latest_ns > most_ns) return std::nullopt;
        return latest_ns;
      }
      new_states_.insert(new_states_.end(), free_ns_.begin(), free_ns_.end());
      new_latest_ns_.push_back(0);
    }
    const OpId op = order_[n];
    if (!put(op, most_ns)) return std::nullopt;
    new_latest_ns_.back() = std::max(new_latest_ns_.back(), finish_ns_[op]);
    latest_ns = std::max(latest_ns, finish_ns_[op]);
    const bool has_tail = n > tails_from_ && moved_in_[op] != change_;
    if (has_tail && finish_ns_[op] + tail_ns_[op] > most_ns) return std::nullopt;
  }
  return latest_ns;
}

// False where the op alone is too late.
bool LineClock::put(OpId op, std::int64_t most_ns) {
  const DeviceId device = device_[op];
  std::int64_t start_ns = free_ns_[index(device)];
  for (const Arc& arc : arcs_.producers(op)) {
    const bool is_here = device_[arc.op] == device;
    start_ns = std::max(start_ns, is_here ? finish_ns_[arc.op] : copy_ns_[slot(arc.value, device)]);
  }
  const std::int64_t finish_ns = start_ns + problem_.duration_ns(op, device);
  if (finish_ns > most_ns) return false;
  bool is_new = finish_ns != finish_ns_[op];
  if (is_new) {
    old_times_.push_back({op, finish_ns_[op]});
    finish_ns_[op] = finish_ns;
  }
  free_ns_[index(device)] = finish_ns;

  const std::span<const Arc> readers = arcs_.readers(op);
  std::size_t last_reader = 0;
  for (std::size_t n = 0; n < readers.size();) {
    const SentId value = readers[n].value;
    DeviceMask destinations;
    for (; n < readers.size() && readers[n].value == value; ++n) {
      destinations.set(device_[readers[n].op]);
      last_reader = std::max(last_reader, position_[readers[n].op]);
    }
    destinations.reset(device);
    destinations.for_each([&](DeviceId to) {
      const std::int64_t arrival_ns = grant(value, device, to, finish_ns);
      std::int64_t& copy_ns = copy_ns_[slot(value, to)];
      if (arrival_ns == copy_ns) return;
      is_new = true;
      old_copies_.push_back({slot(value, to), copy_ns});
      copy_ns = arrival_ns;
    });
  }
  work_ += 1 + readers.size();
  if (is_new) unsettled_until_ = std::max(unsettled_until_, last_reader);
  return true;
}

std::int64_t LineClock::grant(SentId value, DeviceId from, DeviceId to, std::int64_t at_ns) {
  const std::int64_t crossing_ns = arcs_.crossing_ns(value, from, to);
  if (!contention_ || crossing_ns == kMaxQuantity) return saturating_add(at_ns, crossing_ns);
  const Link& link = problem_.link(from, to);
  for (const ChannelId channel : link.channels) {
    at_ns = std::max(at_ns, free_ns_[device_count_ + index(channel)]);
  }
  const std::int64_t arrival_ns = saturating_add(at_ns, crossing_ns);
  for (const ChannelId channel : link.channels) {
    free_ns_[device_count_ + index(channel)] = arrival_ns - link.latency_ns;
  }
  return arrival_ns;
}

// The blocks after a change that is kept.
void LineClock::settle() {
  const std::size_t first = first_touched_ / block_size_;
  for (std::size_t n = 0; n < new_latest_ns_.size(); ++n) {
    blocks_[first + n].latest_ns = new_latest_ns_[n];
  }
  std::copy(new_states_.begin(), new_states_.end(),
            states_.begin() + static_cast<std::ptrdiff_t>(first * state_size_));
  std::int64_t latest_ns = 0;
  for (Block& block : blocks_) {
    block.before_ns = latest_ns;
    latest_ns = std::max(latest_ns, block.latest_ns);
  }
  latest_ns = 0;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    latest_ns = std::max(latest_ns, block->latest_ns);
    block->from_ns = latest_ns;
  }
}

void LineClock::find_tails() {
  untailed_ = 0;
  // From the start of the next op of each device, of the next transfer of each channel.
  std::fill(free_ns_.begin(), free_ns_.end(), 0);
  tight_.clear();
  std::vector<DeviceId> destinations;
  for (std::size_t n = order_.size(); n-- > 0;) {
    const OpId op = order_[n];
    const DeviceId device = device_[op];
    const std::span<const Arc> readers = arcs_.readers(op);
    std::int64_t tail_ns = free_ns_[index(device)];
    for (std::size_t end = readers.size(); end > 0;) {
      const SentId value = readers[end - 1].value;
      std::size_t first = end;
      DeviceMask mask;
      for (; first > 0 && readers[first - 1].value == value; --first) {
        const OpId reader = readers[first - 1].op;
        const DeviceId to = device_[reader];
        const std::int64_t from_start_ns = problem_.duration_ns(reader, to) + tail_ns_[reader];
        if (to == device) {
          tail_ns = std::max(tail_ns, from_start_ns);
        } else {
          mask.set(to);
        }
      }
      destinations.clear();
      mask.for_each([&](DeviceId to) { destinations.push_back(to); });
      for (; !destinations.empty(); destinations.pop_back()) {
        const DeviceId to = destinations.back();
        std::int64_t after_ns = 0;  // its arrival
        for (std::size_t k = first; k < end; ++k) {
          const OpId reader = readers[k].op;
          if (device_[reader] != to) continue;
          after_ns = std::max(after_ns, problem_.duration_ns(reader, to) + tail_ns_[reader]);
        }
        const std::int64_t crossing_ns = arcs_.crossing_ns(value, device, to);
        std::int64_t from_grant_ns = saturating_add(crossing_ns, after_ns);
        if (contention_ && crossing_ns < kMaxQuantity) {
          const Link& link = problem_.link(device, to);
          for (const ChannelId channel : link.channels) {
            const std::int64_t next_ns = free_ns_[device_count_ + index(channel)];
            from_grant_ns = std::max(from_grant_ns, crossing_ns - link.latency_ns + next_ns);
          }
          for (const ChannelId channel : link.channels) {
            free_ns_[device_count_ + index(channel)] = from_grant_ns;
          }
        }
        tail_ns = std::max(tail_ns, from_grant_ns);
      }
      end = first;
    }
    tail_ns_[op] = tail_ns;
    free_ns_[index(device)] = tail_ns + problem_.duration_ns(op, device);
    if (finish_ns_[op] + tail_ns >= step_ns_) tight_.push_back(op);
  }
}

}  // namespace pardnn
