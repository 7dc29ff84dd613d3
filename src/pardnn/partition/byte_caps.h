// ByteCaps: how many bytes of units each device may still be given.
#pragma once

#include <cstdint>
#include <optional>

#include "pardnn/problem/problem.h"

namespace pardnn {

inline constexpr std::int64_t kNoCap =
    1'000'000;  // per mille; more than all where devices are alike

class ByteCaps {
 public:
  // A device may be given `per_mille` of its share, by memory above the reserve, of the bytes of
  // all units: variables, and all outputs as if none were freed.
  ByteCaps(const Problem& problem, std::int64_t per_mille);

  std::int64_t bytes(UnitId unit) const { return unit_bytes_[unit]; }
  std::int64_t room_bytes(DeviceId device) const { return room_bytes_[device]; }
  // Whether the unit fits into what is left of the device's cap or, if it fits into no cap, no
  // other device has more left. Of one allowed device at least that is always true.
  bool goes_to(UnitId unit, DeviceId device) const;
  void give(UnitId unit, DeviceId device) { room_bytes_[device] -= unit_bytes_[unit]; }

 private:
  const Problem& problem_;
  Table<UnitId, std::int64_t> unit_bytes_;
  Table<DeviceId, std::int64_t> room_bytes_;
};

// The cap at which a device given all it may be is as full as its memory, per mille of its share
// and 1000 at least: when one device alone would hold S bytes at its fullest, so that S of all
// bytes given are there at once, a device with memory for R may be given R / S of all bytes.
// Nothing where no device could be given too much.
std::optional<std::int64_t> cap_per_mille(const Problem& problem);

}  // namespace pardnn
