// Lineup: a proposal as a line of ops with devices and times; Walk: devices and channels filled op
// by op along it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pardnn/plan/plan.h"
#include "pardnn/partition/arcs.h"

namespace pardnn {

struct Lineup {
  std::vector<OpId> order;  // all ordinary ops; respects the edges
  UnitPlacement placement;
  Table<OpId, DeviceId> device;
  Table<OpId, std::int64_t> start_ns, finish_ns;
  std::int64_t step_ns = 0;
};

// The order of starts; sequences of devices stay as they are.
void sort_by_start(Lineup& lineup);

// Each op that is put starts as soon as its device and its inputs allow. Values are sent when the
// first op that reads them on a device is put there, over channels that serve in that order: exact
// without contention, an estimate with it.
//
// A walk may be mirrored: it then goes through the step from its end, edges turned round. Without
// contention a step and its mirror image take equally long, and what is tight for one is loose for
// the other. Channels are not waited for in a mirrored walk.
class Walk {
 public:
  Walk(const Problem& problem, const Arcs& arcs);

  bool is_mirrored() const { return mirrored_; }
  // Turns the lineup, and the walk with it; the times become those of the new direction.
  void mirror(Lineup& lineup);

  // In the direction of the walk.
  std::span<const Arc> producers(OpId op) const {
    return mirrored_ ? arcs_.readers(op) : arcs_.producers(op);
  }
  std::span<const Arc> readers(OpId op) const {
    return mirrored_ ? arcs_.producers(op) : arcs_.readers(op);
  }
  // 0 on one device.
  std::int64_t crossing_ns(SentId value, DeviceId from, DeviceId to) const {
    if (from == to) return 0;
    return mirrored_ ? arcs_.crossing_ns(value, to, from) : arcs_.crossing_ns(value, from, to);
  }

  // From now on the walk is along this lineup, and nothing is put yet.
  void restart(Lineup& lineup);
  // Devices and times of the lineup from its order and placement.
  void time(Lineup& lineup);
  // The op comes next on the device.
  void put(OpId op, DeviceId device);
  // The moment at which a value of an op that was put is on the device, or would be if sent now.
  std::int64_t there_ns(const Arc& arc, DeviceId device) const;

  std::int64_t free_ns(DeviceId device) const { return free_ns_[device]; }
  std::int64_t latest_ns() const;  // at which a device becomes free

  // What was put after the mark is taken back, but for devices and times in the lineup.
  void mark();
  void back_to_mark();

 private:
  static constexpr std::int64_t kNotSent = -1;

  bool waits() const { return contention_ && !mirrored_; }
  std::int64_t channels_free_ns(std::int64_t at_ns, DeviceId from, DeviceId to) const;
  std::int64_t send(const Arc& arc, DeviceId device);
  std::size_t slot(SentId value, DeviceId device) const {
    return index(value) * problem_.device_count() + index(device);
  }

  const Problem& problem_;
  const Arcs& arcs_;
  const bool contention_;
  bool mirrored_ = false;
  Lineup* lineup_ = nullptr;
  Table<DeviceId, std::int64_t> free_ns_, marked_free_ns_;
  Table<ChannelId, std::int64_t> channel_free_ns_, marked_channel_free_ns_;
  std::vector<std::int64_t>
      copy_ns_;                    // values x devices: arrival, only where channels are waited for
  std::vector<std::size_t> sent_;  // slots of copy_ns_ since the mark
};

}  // namespace pardnn
