// LiveBytes: what every device holds while a step is listed and devices are still being chosen;
// what a planner asks before it gives an op to a device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/profile.h"

namespace pardnn {

// Time counts in ops started. A value pushed to another device lies there from the moment it was
// made, so an op that is given to a device late may overfill it in the past: all moments are kept.
// While it is open where the other readers of a value go, it stays where it was made; a copy goes
// after the readers known there and comes back, from then on, when another one is given to the
// device. Aliases count as their origin on every device; take-overs (rule M4b) are not followed.
// The inputs of an op that is given
// away have been made. O(inputs * log ops) per call.
class LiveBytes {
 public:
  explicit LiveBytes(const Problem& problem);

  // The most bytes from now on, or, where values would have to be sent, from when they were made,
  // if the op ran on the device and `unsettled` units went there with it.
  std::int64_t most_with(OpId op, DeviceId device, const std::vector<UnitId>& unsettled) const;
  // Bytes that would be sent for it.
  std::int64_t sent_bytes(OpId op, DeviceId device) const;
  std::int64_t used_bytes(DeviceId device) const { return profiles_[device].at(now_); }
  std::int64_t taken_bytes(OpId op) const { return taken_[op]; }
  // Bytes that the op leaves behind less those that go with it; it must have been given a device.
  std::int64_t growth_bytes(OpId op) const;

  // The op's device is chosen. Calls changed(op) for each op whose growth may have fallen.
  template <class Changed>
  void give(OpId op, DeviceId device, Changed changed);
  void start(OpId op);
  template <class Changed>
  void finish(OpId op, Changed changed);

 private:
  struct Held {  // a value on one device; the first of a list is where it was made
    DeviceId device;
    std::size_t from = 0;  // the moment it is there from, or left
    bool there = false;
    std::uint32_t readers = 0;     // given to this device and not finished
    std::uint64_t reader_sum = 0;  // of their ids: when one is left, this is it
  };

  // The first tensor of the buffer; of a variable's the one that its read op makes.
  TensorId value_of(TensorId tensor) const;
  // A variable is there anyway where it is read from.
  std::int64_t bytes(TensorId value, const Held& held) const {
    return &held == &held_[value].front() && in_variable_[value] ? 0 : problem_.buffer_bytes(value);
  }
  Held* find(TensorId value, DeviceId device);
  const Held* find(TensorId value, DeviceId device) const;
  bool is_kept(TensorId value) const { return kept_[value] || open_[value] > 0; }
  void add(DeviceId device, std::size_t from, std::int64_t bytes) {
    profiles_[device].add(from, moments_, bytes);
  }
  void leave(TensorId value, Held& held);
  void settle_unit(UnitId unit, DeviceId device);
  void promise();

  const Problem& problem_;
  const std::size_t moments_;
  std::size_t now_ = 0;
  Table<OpId, DeviceId> device_;
  Lists<OpId, TensorId> reads_;          // origins, each once
  Lists<OpId, TensorId> every_;          // origins of `every` values read, each once
  Table<TensorId, std::uint32_t> open_;  // readers that have no device yet
  Table<TensorId, char> kept_;           // fetched
  Table<TensorId, char> in_variable_;
  Table<TensorId, DeviceSet> every_there_;
  Table<TensorId, std::vector<Held>> held_;
  Table<OpId, std::int64_t> taken_, made_;
  Table<UnitId, char> unit_settled_;
  Table<UnitId, std::int64_t> variable_bytes_;
  Table<DeviceId, Profile> profiles_;
  // Variables of units without a device are promised to all devices, as they have memory.
  std::int64_t promised_bytes_ = 0;
  Table<DeviceId, std::int64_t> room_bytes_, promised_;
  std::int64_t all_room_bytes_ = 0;
};

template <class Changed>
void LiveBytes::give(OpId op, DeviceId device, Changed changed) {
  device_[op] = device;
  const UnitId unit = *problem_.unit(op);
  if (!unit_settled_[unit]) settle_unit(unit, device);
  for (const TensorId value : every_[op]) {
    if (every_there_[value][index(device)]) continue;
    every_there_[value].set(index(device));
    add(device, 0, problem_.buffer_bytes(value));
  }
  for (const TensorId value : reads_[op]) {
    Held* held = find(value, device);
    if (held == nullptr) {
      held_[value].push_back({.device = device, .from = held_[value].front().from});
      held = &held_[value].back();
    }
    if (!held->there) {
      add(device, held->from, bytes(value, *held));
      held->there = true;
    }
    ++held->readers;
    held->reader_sum += index(op);
    --open_[value];
    Held& home = held_[value].front();
    if (is_kept(value) || !home.there) continue;
    if (home.readers == 0) leave(value, home);
    if (home.readers == 1) changed(OpId{static_cast<std::uint32_t>(home.reader_sum)});
  }
}

template <class Changed>
void LiveBytes::finish(OpId op, Changed changed) {
  add(device_[op], now_, made_[op] - taken_[op]);
  for (const TensorId value : reads_[op]) {
    Held& held = *find(value, device_[op]);
    --held.readers;
    held.reader_sum -= index(op);
    const bool is_home = &held == &held_[value].front();
    if (is_home && is_kept(value)) continue;
    if (held.readers == 0 && held.there) leave(value, held);
    if (held.readers == 1) changed(OpId{static_cast<std::uint32_t>(held.reader_sum)});
  }
}

}  // namespace pardnn
