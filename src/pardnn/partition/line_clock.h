// LineClock: the times of a line of ops while single ops change their device or their place in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/partition/head_room.h"
#include "pardnn/partition/lineup.h"

namespace pardnn {

// The idea: what is before the first op that a change touches stays as it was, so times are walked
// anew from there only. Each op has a tail, what followed its finish before the change; finish and
// tail together show soon that a step becomes too long. (Between ops that moved tails may have
// changed: a few good changes are refused, no bad one is kept.) And where devices, channels and all
// values under way are as they were, the rest is as it was, too.
//
// Each op starts as soon as its device and its inputs allow; transfers are requested when their
// producer finishes. Channels serve in the order of the line, so times are exact where only one
// device sends through a channel, and without contention; an estimate otherwise.
class LineClock {
 public:
  LineClock(const Problem& problem, const Arcs& arcs);

  // The line of this lineup, in the order of its starts.
  void start(const Lineup& lineup);
  // Fills order and placement; the times are to be found by a Walk.
  void write(Lineup& lineup) const;

  std::int64_t step_ns() const { return step_ns_; }
  std::span<const OpId> order() const { return order_; }
  std::size_t position(OpId op) const { return position_[op]; }
  DeviceId device(OpId op) const { return device_[op]; }
  DeviceId device(UnitId unit) const { return placement_[unit]; }
  // The ops that have no time to spare. Never empty.
  std::span<const OpId> tight() const { return tight_; }

  // A change is made of any number of these; an op must stay behind what it waits for.
  void move(UnitId unit, DeviceId to);
  void shift(std::size_t from, std::size_t to);
  // Whether the step is `most_ns` at most after the change and there is room for it; otherwise all
  // is as before it.
  bool keeps(std::int64_t most_ns, HeadRoom* room = nullptr);
  // Ops and values looked at since the beginning.
  std::size_t work() const { return work_; }

 private:
  struct Block {  // latest finish of the ops of a stretch of the line, before it, from it on
    std::int64_t latest_ns = 0, before_ns = 0, from_ns = 0;
  };
  struct OldTime {
    OpId op;
    std::int64_t ns;
  };
  struct OldCopy {
    std::size_t slot;
    std::int64_t ns;
  };
  struct Change {
    bool is_shift = false;
    UnitId unit{};
    DeviceId device{};             // before
    std::size_t from = 0, to = 0;  // of a shift
  };

  std::size_t slot(SentId value, DeviceId device) const {
    return index(value) * device_count_ + index(device);
  }
  void touch(std::size_t first, std::size_t last);
  void rotate(std::size_t from, std::size_t to);
  void begin_change();
  void undo_change();
  void settle();
  void find_tails();
  bool takes(HeadRoom* room);
  std::optional<std::int64_t> walk(std::int64_t most_ns);
  bool put(OpId op, std::int64_t most_ns);
  std::int64_t grant(SentId value, DeviceId from, DeviceId to, std::int64_t at_ns);
  bool is_as_before(std::size_t block) const;
  auto state(std::size_t block) const {
    return states_.begin() + static_cast<std::ptrdiff_t>(block * state_size_);
  }

  const Problem& problem_;
  const Arcs& arcs_;
  const std::size_t device_count_, state_size_;
  const bool contention_;
  std::size_t block_size_ = 0;

  std::vector<OpId> order_;
  UnitPlacement placement_;
  Table<OpId, std::size_t> position_;
  Table<OpId, DeviceId> device_;
  Table<OpId, std::int64_t> finish_ns_;
  std::vector<std::int64_t> copy_ns_;  // values x devices: arrival
  std::int64_t step_ns_ = 0;

  Table<OpId, std::int64_t> tail_ns_;    // from the finish to the end of the step
  Table<OpId, std::uint32_t> moved_in_;  // the last change that moved it
  std::vector<OpId> tight_;
  int untailed_ = 0;  // changes since tails were found

  std::vector<std::int64_t> free_ns_;  // devices, then channels
  std::vector<Block> blocks_;
  std::vector<std::int64_t> states_;                      // blocks x free_ns_: before each block
  std::vector<std::int64_t> new_states_, new_latest_ns_;  // of the walk's first block and on

  std::vector<Change> changes_;
  std::size_t first_touched_ = 0, last_touched_ = 0;
  std::size_t tails_from_ = 0;  // where those of ops that were not moved may be trusted
  std::uint32_t change_ = 0;
  std::size_t unsettled_until_ = 0;  // position of the last reader of what is not as before
  std::vector<UnitId> moved_;
  std::vector<OldTime> old_times_;
  std::vector<OldCopy> old_copies_;
  std::size_t work_ = 0;
};

}  // namespace pardnn
