// Windows: places one stretch of a lineup after another anew while the rest stays where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/partition/head_room.h"
#include "pardnn/partition/lineup.h"

namespace pardnn {

// How a pass goes about it.
struct Knobs {
  std::size_t width = 100;           // ops of a window
  std::size_t offset = 0;            // ops before the first whole window; less than the width
  std::int64_t delay_quarters = 0;   // what would have to cross counts as so much later
  std::int64_t reach_per_mille = 0;  // of the shortest run: how late an urgent op may start
  std::int64_t noise_per_mille = 0;  // of the priorities
  bool looks_ahead = false;          // devices are chosen by the path that follows, too
  // The windows that are tried; what comes before and after stays.
  std::size_t first = 0, count = std::numeric_limits<std::size_t>::max();
};

// The idea: each op of the line has a tail, the longest path from its start to the end of the step
// through edges and through the sequences of devices. When a window, a stretch of the line, is
// listed anew, the step cannot become longer as long as no op that leaves the window, plus the tail
// of what it meets there, is later than the longest path was; so a try costs no more than its
// window. Within a window ops are taken by list scheduling with the longest path to the end as
// priority; more than 16 ready ops are not weighed against each other, the rest wait, the most
// urgent first. O((ops + edges) * devices).
class Windows {
 public:
  Windows(const Problem& problem, const Arcs& arcs);

  Walk& walk() { return walk_; }
  // How many windows a pass with these knobs has.
  std::size_t count(const Knobs& knobs) const;
  // Tries every window once, in the direction of the walk, and moves units only where there is
  // room. Answers how many were kept. The lineup must be timed; it comes back timed and in the
  // order of starts.
  std::size_t pass(Lineup& lineup, const Knobs& knobs, Random& random, HeadRoom* room = nullptr);

 private:
  struct Outcome {
    std::int64_t longest_ns = 0;  // path through the window to the end of the step
    std::int64_t sum_ns = 0;      // over devices, of when they are free and what follows there
    friend auto operator<=>(const Outcome&, const Outcome&) = default;
  };

  struct Slot {  // a ready op that may be next
    OpId op{};
    bool is_free = false;  // its device is to be chosen
    bool is_stale = true;  // what follows is to be found
    DeviceId device{};
    std::int64_t start_ns = 0, finish_ns = 0;
  };

  std::vector<std::size_t> window_ends(const Knobs& knobs) const;
  void find_tails(const std::vector<std::size_t>& ends);
  bool try_window(const Knobs& knobs, Random& random);
  void enter(std::size_t first, std::size_t last, const std::int64_t* next_ns);
  bool is_inside(OpId op) const { return inside_[op] == window_; }
  bool is_movable(UnitId unit) const {
    return unit_window_[unit] == window_ && unit_inside_[unit] == problem_.ops(unit).size();
  }

  void put(OpId op, DeviceId device);
  Outcome outcome() const;
  void replay();
  bool has_room();
  void undo();

  void rank(const Knobs& knobs, Random& random);
  // The longest path behind the op where `tail_ns(reader)` follows from each reader's start on.
  template <class TailOf>
  std::int64_t after_ns(OpId op, TailOf tail_ns) const;
  std::int64_t tail_or_rank_ns(OpId op) const {
    return is_inside(op) ? priority_[op] : tail_ns_[op];
  }
  bool list(const Knobs& knobs, std::int64_t bound_ns);
  void find_first_ready(const Knobs& knobs);
  void make_ready(OpId op, const Knobs& knobs);
  void activate(OpId op, const Knobs& knobs);
  void choose_device(Slot& slot, const Knobs& knobs);
  std::size_t most_urgent(const Knobs& knobs);
  void drop(std::size_t row);
  void settle(UnitId unit, DeviceId device);
  std::int64_t* row(std::vector<std::int64_t>& table, std::size_t number) {
    return table.data() + number * device_count_;
  }

  const Problem& problem_;
  const std::size_t device_count_;
  std::size_t ordinary_count_ = 0;
  Walk walk_;
  Lineup* lineup_ = nullptr;
  HeadRoom* room_ = nullptr;
  Table<OpId, std::int64_t> tail_ns_;
  std::vector<std::int64_t> after_ns_;  // windows x devices: tail of the first op behind it there
  std::int64_t floor_ns_ = 0;           // the longest path out of a window of this pass

  // The window that is open.
  std::size_t first_ = 0, last_ = 0;
  const std::int64_t* next_ns_ = nullptr;                   // its row of after_ns_
  std::uint32_t window_ = 0;                                // numbers all windows ever opened
  Table<OpId, std::uint32_t> inside_;                       // the last window it was in
  Table<UnitId, std::uint32_t> unit_window_, unit_inside_;  // the same, and ops of it there
  Table<UnitId, char> unit_settled_;
  std::int64_t longest_ns_ = 0;
  std::vector<DeviceId> device_before_;  // of each op of it, in its old order
  std::vector<UnitId> moved_;

  // The new order of it.
  Table<OpId, std::int64_t> priority_;
  Table<OpId, std::uint32_t> missing_;
  std::vector<OpId> listed_;
  std::vector<Slot> active_;
  std::vector<std::int64_t> there_ns_, then_ns_;  // slots x devices: inputs there; path after it
  std::vector<std::pair<std::int64_t, OpId>> waiting_;  // heap, greatest priority first
};

}  // namespace pardnn
