// ByteCaps: how many bytes of units each device may still be given.
#include "pardnn/partition/byte_caps.h"

#include <algorithm>

#include "pardnn/problem/plenty.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/one_device.h"
#include "pardnn/partition/times.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

std::int64_t memory_bytes(const Problem& problem, DeviceId device) {
  return std::max<std::int64_t>(0, problem.limit_bytes(device) - problem.reserve_bytes(device));
}

Wide memory_bytes(const Problem& problem) {
  Wide all = 0;
  for (const DeviceId device : problem.devices()) all += memory_bytes(problem, device);
  return all;
}

}  // namespace

ByteCaps::ByteCaps(const Problem& problem, std::int64_t per_mille)
    : problem_(problem),
      unit_bytes_(problem.units().size(), 0),
      room_bytes_(problem.device_count(), 0) {
  Wide all_bytes = 0;
  for (const UnitId unit : problem.units()) {
    unit_bytes_[unit] = bytes_of(problem, unit);
    all_bytes += unit_bytes_[unit];
  }
  const Wide all_memory = memory_bytes(problem);
  for (const DeviceId device : problem.devices()) {
    if (all_memory == 0) break;
    // The product of two sums of bytes may pass 128 bits with the per mille: divide in between.
    const Wide share = all_bytes * memory_bytes(problem, device) / all_memory;
    room_bytes_[device] =
        static_cast<std::int64_t>(std::min<Wide>(kMaxQuantity, share * per_mille / 1000));
  }
}

bool ByteCaps::goes_to(UnitId unit, DeviceId device) const {
  const std::int64_t bytes = unit_bytes_[unit];
  if (bytes <= room_bytes_[device]) return true;
  DeviceId roomiest = device;
  for (const DeviceId other : problem_.devices()) {
    if (!problem_.is_allowed(unit, other)) continue;
    if (bytes <= room_bytes_[other]) return false;
    if (room_bytes_[other] > room_bytes_[roomiest]) roomiest = other;
  }
  return roomiest == device;
}

std::optional<std::int64_t> cap_per_mille(const Problem& problem) {
  if (memory_is_plenty(problem)) return std::nullopt;
  Trial trial(problem);
  Wide held = 0;
  if (trial.schedule(one_device(problem, {})) != nullptr) {
    const Table<DeviceId, Peak> peaks = trial.peaks();
    for (const DeviceId device : problem.devices()) {
      held += peaks[device].bytes - problem.reserve_bytes(device);
    }
  }
  const Wide per_mille = memory_bytes(problem) * 1000 / std::max<Wide>(1, held);
  return static_cast<std::int64_t>(std::clamp<Wide>(per_mille, 1000, kNoCap));
}

}  // namespace pardnn
