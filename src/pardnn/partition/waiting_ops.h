// WaitingOps: the ready ops that one device may run, by the moment their inputs can be there.
//
// Where the last input waits for the channels of a link, the op waits by how long the input takes
// from when they are free: a transfer then makes all of them later at once, and as long as even the
// least of them is too late none is looked at.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "pardnn/base/integers.h"
#include "pardnn/base/table.h"
#include "pardnn/problem/problem.h"

namespace pardnn {

// When the inputs are there, and the device from which the last one comes if it waits for channels:
// then it is there so long after they are free.
struct InputsThere {
  std::int64_t at_ns = 0;
  std::optional<DeviceId> from = {};
  std::int64_t after_free_ns = 0;
};

class WaitingOps {
  struct Waiting {
    std::int64_t at_ns, minus_priority;  // least first
    OpId op;
    std::int64_t other_ns;  // the penalty of what is late, the inputs' moment of what is there
    auto operator<=>(const Waiting&) const = default;
  };
  using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<Waiting>>;

 public:
  // What may start first: the moment, made later by its penalty.
  struct Head {
    std::int64_t at_ns, minus_priority;
    OpId op;
    auto operator<=>(const Head&) const = default;
  };

  explicit WaitingOps(std::size_t device_count) : links_(device_count) {}

  // The op starts there later than its inputs say by `penalty_ns`. The device is free at `free_ns`.
  void add(OpId op, std::int64_t priority, const InputsThere& there, std::int64_t penalty_ns,
           std::int64_t free_ns) {
    const bool is_there = there.at_ns <= free_ns;
    Line& line = there.from.has_value() ? links_[*there.from] : local_;
    const std::int64_t since_ns = there.from.has_value() ? there.after_free_ns : there.at_ns;
    if (is_there) {
      line.push_there({penalty_ns, -priority, op, since_ns});
    } else {
      line.late.push({saturating_add(since_ns, penalty_ns), -priority, op, penalty_ns});
    }
  }

  // The op to start first on the device, free at `free_ns`; `pop` takes it out. Of a link's
  // channels `channels_free_ns(from)` says when they are free. Ops that are placed are forgotten,
  // and at the head those that `is_gone`, which is asked once for each that it is true of.
  template <typename ChannelsFree, typename IsPlaced, typename IsGone>
  std::optional<Head> head(std::int64_t free_ns, const ChannelsFree& channels_free_ns,
                           const IsPlaced& is_placed, const IsGone& is_gone) {
    head_of_ = nullptr;
    std::optional<Head> first;
    const auto look = [&](Queue& queue, std::int64_t since_ns) {
      while (!queue.empty() && is_gone(queue.top().op)) queue.pop();
      if (queue.empty()) return;
      const Waiting& top = queue.top();
      const Head head{saturating_add(top.at_ns, since_ns), top.minus_priority, top.op};
      if (first.has_value() && *first <= head) return;
      first = head;
      head_of_ = &queue;
    };
    for_each_line(channels_free_ns, [&](Line& line, std::int64_t since_ns) {
      line.update(free_ns, since_ns, is_placed);
      if (line.is_any_there(free_ns, since_ns)) look(line.there, free_ns);
    });
    if (first.has_value()) return first;
    for_each_line(channels_free_ns, [&](Line& line, std::int64_t since_ns) {
      line.put_off_all(is_placed);
      look(line.late, since_ns);
    });
    return first;
  }

  // Takes out what `head` answered last.
  void pop() { head_of_->pop(); }

 private:
  // What waits for one link, or for nothing but a moment.
  struct Line {
    Queue there, late;
    std::int64_t least_ns = kMaxQuantity;  // at most the moment of every op in `there`

    void push_there(const Waiting& waiting) {
      least_ns = std::min(least_ns, waiting.other_ns);
      there.push(waiting);
    }

    bool is_any_there(std::int64_t free_ns, std::int64_t since_ns) const {
      return !there.empty() && saturating_add(least_ns, since_ns) <= free_ns;
    }

    // Brings what is there by now to `there`, and what heads it and no longer is back.
    template <typename IsPlaced>
    void update(std::int64_t free_ns, std::int64_t since_ns, const IsPlaced& is_placed) {
      while (!late.empty() && saturating_add(late.top().at_ns, since_ns) <= free_ns) {
        const Waiting waiting = late.top();
        late.pop();
        if (!is_placed(waiting.op)) {
          const std::int64_t penalty_ns = waiting.other_ns;
          push_there({penalty_ns, waiting.minus_priority, waiting.op, waiting.at_ns - penalty_ns});
        }
      }
      if (!is_any_there(free_ns, since_ns)) return;
      while (!there.empty() && saturating_add(there.top().other_ns, since_ns) > free_ns) {
        put_off(is_placed);
      }
      if (there.empty()) least_ns = kMaxQuantity;
    }

    template <typename IsPlaced>
    void put_off(const IsPlaced& is_placed) {
      const Waiting waiting = there.top();
      there.pop();
      if (is_placed(waiting.op)) return;
      const std::int64_t late_ns = saturating_add(waiting.other_ns, waiting.at_ns);
      late.push({late_ns, waiting.minus_priority, waiting.op, waiting.at_ns});
    }

    template <typename IsPlaced>
    void put_off_all(const IsPlaced& is_placed) {
      while (!there.empty()) put_off(is_placed);
      least_ns = kMaxQuantity;
    }
  };

  template <typename ChannelsFree, typename Visit>
  void for_each_line(const ChannelsFree& channels_free_ns, const Visit& visit) {
    visit(local_, 0);
    for (const DeviceId from : links_.ids()) {
      Line& line = links_[from];
      if (!line.there.empty() || !line.late.empty()) visit(line, channels_free_ns(from));
    }
  }

  Line local_;
  Table<DeviceId, Line> links_;  // by where the last input comes from
  Queue* head_of_ = nullptr;
};

}  // namespace pardnn
