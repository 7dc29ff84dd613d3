#include "pardnn/partition/head_room.h"

namespace pardnn {

HeadRoom::HeadRoom(const Problem& problem, const Times& times, const UnitPlacement& placement,
                   Trial& trial)
    : problem_(problem),
      books_(problem, times, placement, trial.timeline(), trial.lifetimes()),
      over_bytes_(problem.device_count(), 0) {
  const Table<DeviceId, Peak> peaks = trial.peaks();
  for (const DeviceId device : problem.devices()) {
    books_.set_aside(device, counted_bytes(problem, peaks[device]) - peaks[device].bytes);
  }
}

bool HeadRoom::takes(std::span<const UnitId> units, const UnitPlacement& placement) {
  for (const DeviceId device : problem_.devices()) {
    over_bytes_[device] = books_.overflow_bytes(device);
  }
  const Books::Mark before = books_.mark();
  for (const UnitId unit : units) books_.move(unit, placement[unit]);
  for (const DeviceId device : problem_.devices()) {
    if (books_.overflow_bytes(device) <= over_bytes_[device]) continue;
    books_.undo(before);
    return false;
  }
  return true;
}

}  // namespace pardnn
