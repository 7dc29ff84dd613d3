#include "pardnn/plan/impossible.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "pardnn/base/error.h"
#include "pardnn/base/integers.h"
#include "pardnn/base/quantity.h"
#include "pardnn/plan/footprint.h"
#include "pardnn/plan/memory_bound.h"

namespace pardnn {
namespace {

std::int64_t room_bytes(const Problem& problem, DeviceId device) {
  return std::max<std::int64_t>(0, problem.limit_bytes(device) - problem.reserve_bytes(device));
}

// Limits may be near the greatest number each.
std::int64_t sum_of_room(std::int64_t a, std::int64_t b) { return std::min(kMaxQuantity, a + b); }

std::optional<Impossible> too_large_unit(const Problem& problem) {
  const Table<TensorId, std::int64_t> behind = least_buffer_bytes(problem);
  std::optional<Impossible> worst;
  std::int64_t worst_missing = 0;
  for (const UnitId unit : problem.units()) {
    const std::int64_t bytes = least_bytes(problem, unit, behind);
    std::optional<std::int64_t> missing;
    std::optional<DeviceId> largest;
    for (const DeviceId device : problem.devices()) {
      if (!problem.is_allowed(unit, device)) continue;
      const std::int64_t here = bytes + problem.reserve_bytes(device) - problem.limit_bytes(device);
      missing = std::min(missing.value_or(here), here);
      if (!largest || room_bytes(problem, device) > room_bytes(problem, *largest)) {
        largest = device;
      }
    }
    if (*missing <= worst_missing) continue;
    worst_missing = *missing;
    worst = Impossible{.why = Impossible::Why::kUnit,
                       .bytes = bytes,
                       .room_bytes = room_bytes(problem, *largest),
                       .unit = unit,
                       .at = {},
                       .devices = DeviceSet{}.set(index(*largest))};
  }
  return worst;
}

// For every set of devices that some unit is confined to: all that is confined to a part of it.
std::optional<Impossible> too_many_variables(const Problem& problem) {
  constexpr std::size_t kMostSets = 64;
  const auto less = [](const DeviceSet& a, const DeviceSet& b) {
    return a.to_string() < b.to_string();
  };
  DeviceSet all;
  for (const DeviceId device : problem.devices()) all.set(index(device));
  std::map<DeviceSet, std::int64_t, decltype(less)> confined(less);
  confined[all] = 0;
  for (const UnitId unit : problem.units()) {
    const std::int64_t bytes = variable_bytes(problem, unit);
    if (bytes == 0) continue;
    const DeviceSet& allowed = problem.allowed(unit);
    const bool is_known = confined.size() < kMostSets || confined.contains(allowed);
    confined[is_known ? allowed : all] += bytes;
  }
  std::optional<Impossible> worst;
  std::int64_t worst_missing = 0;
  for (const auto& [devices, own] : confined) {
    std::int64_t bytes = 0, room = 0;
    for (const auto& [part, part_bytes] : confined) {
      if ((part & ~devices).none()) bytes += part_bytes;
    }
    for (const DeviceId device : problem.devices()) {
      if (devices[index(device)]) room = sum_of_room(room, room_bytes(problem, device));
    }
    if (bytes - room <= worst_missing) continue;
    worst_missing = bytes - room;
    worst = Impossible{.why = Impossible::Why::kVariables,
                       .bytes = bytes,
                       .room_bytes = room,
                       .unit = {},
                       .at = {},
                       .devices = devices};
  }
  return worst;
}

// Devices that pieces of these sizes, falling, need at least if each has `room`, which is no less
// than any piece. For any threshold t <= room / 2: pieces above room - t stand alone, those above
// room / 2 need a device each, and those of at least t go beside the latter or elsewhere (S.
// Martello, P. Toth, Lower bounds and reduction procedures for the bin packing problem, Discrete
// Applied Mathematics 28, 1990, bound L2).
std::int64_t devices_for(const std::vector<std::int64_t>& sizes, std::int64_t room) {
  constexpr std::size_t kMostThresholds = 64;
  std::vector<std::int64_t> thresholds{0};
  const auto small = std::partition_point(sizes.begin(), sizes.end(),
                                          [&](std::int64_t size) { return size > room / 2; });
  const auto small_count = static_cast<std::size_t>(sizes.end() - small);
  const std::size_t step = small_count / kMostThresholds + 1;
  for (std::size_t n = 0; n < small_count; n += step) {
    thresholds.push_back(small[static_cast<std::ptrdiff_t>(n)]);
  }
  std::int64_t most = 0;
  for (const std::int64_t threshold : thresholds) {
    std::int64_t alone = 0, large = 0, left_beside_large = 0, rest = 0;
    for (const std::int64_t size : sizes) {
      if (size > room - threshold) {
        ++alone;
      } else if (size > room / 2) {
        ++large;
        left_beside_large += room - size;
      } else if (size >= threshold) {
        rest += size;
      }
    }
    rest = std::max<std::int64_t>(0, rest - left_beside_large);
    most = std::max(most, alone + large + (rest == 0 ? 0 : (rest - 1) / room + 1));
  }
  return most;
}

std::optional<Impossible> too_large_pieces(const Problem& problem) {
  std::int64_t room = 0, devices = 0;
  for (const DeviceId device : problem.devices()) {
    room = std::max(room, room_bytes(problem, device));
    ++devices;
  }
  std::vector<std::int64_t> sizes;
  for (const UnitId unit : problem.units()) {
    const std::int64_t bytes = variable_bytes(problem, unit);
    if (bytes > room) return std::nullopt;  // too large by itself
    if (bytes > 0) sizes.push_back(bytes);
  }
  if (sizes.empty()) return std::nullopt;
  std::sort(sizes.rbegin(), sizes.rend());
  const std::int64_t needed = devices_for(sizes, room);
  if (needed <= devices) return std::nullopt;
  return Impossible{.why = Impossible::Why::kPieces,
                    .bytes = needed,
                    .room_bytes = devices,
                    .unit = {},
                    .at = {},
                    .devices = {}};
}

std::optional<Impossible> too_much_at_once(const Problem& problem) {
  const MemoryBound bound = memory_bound(problem);
  std::int64_t limits = 0;
  for (const DeviceId device : problem.devices()) {
    limits = sum_of_room(limits, problem.limit_bytes(device));
  }
  if (bound.bytes <= limits) return std::nullopt;
  return Impossible{.why = Impossible::Why::kMoment,
                    .bytes = bound.bytes,
                    .room_bytes = limits,
                    .unit = {},
                    .at = bound.at,
                    .devices = {}};
}

std::string shown_name(const Notes& notes, std::string_view key) {
  return notes.name.value_or(std::string(key));
}

std::string device_names(const Problem& problem, const DeviceSet& devices) {
  std::string names;
  for (const DeviceId device : problem.devices()) {
    if (!devices[index(device)]) continue;
    names += (names.empty() ? "" : ", ") + problem.machine().devices[device].name;
  }
  return names;
}

}  // namespace

std::vector<Impossible> proven_impossible(const Problem& problem) {
  std::vector<Impossible> reasons;
  const auto add = [&](const std::optional<Impossible>& reason) {
    if (reason) reasons.push_back(*reason);
    return reason.has_value();
  };
  add(too_large_unit(problem));
  const bool are_variables_enough = add(too_many_variables(problem));
  add(too_large_pieces(problem));
  if (!are_variables_enough) add(too_much_at_once(problem));
  return reasons;
}

std::string unit_name(const Problem& problem, UnitId unit) {
  const Graph& graph = problem.graph();
  if (!problem.ops(unit).empty()) {
    const OpId op = problem.ops(unit).front();
    if (const auto group = graph.group(op)) return "group " + std::string(graph.name(*group));
    return "op " + shown_name(graph.notes(op), graph.key(op));
  }
  const VariableId variable = problem.variables(unit).front();
  if (const auto group = graph.group(variable)) return "group " + std::string(graph.name(*group));
  return "variable " + shown_name(graph.notes(variable), graph.key(variable));
}

std::string sentence(const Problem& problem, const Impossible& reason) {
  const std::string bytes = format_bytes(reason.bytes);
  switch (reason.why) {
    case Impossible::Why::kUnit: {
      const std::int64_t variables = variable_bytes(problem, *reason.unit);
      const bool is_mixed = variables > 0 && variables < reason.bytes;
      return unit_name(problem, *reason.unit) + " alone needs " + bytes +
             (is_mixed ? ", " + format_bytes(variables) + " of it for variables" : "") + ", and " +
             device_names(problem, reason.devices) +
             ", the largest device it may be on, has room for " + format_bytes(reason.room_bytes);
    }
    case Impossible::Why::kVariables:
      if (reason.devices.count() == problem.device_count()) {
        return "the variables alone need " + bytes + ", more than all devices have together";
      }
      return "the variables that may only be on " + device_names(problem, reason.devices) +
             " need " + bytes + ", and there is room for " + format_bytes(reason.room_bytes);
    case Impossible::Why::kPieces:
      return "the variables come in pieces so large that they need " +
             std::to_string(reason.bytes) + " devices, and there are " +
             std::to_string(reason.room_bytes);
    case Impossible::Why::kMoment: {
      std::string moment = "all devices together hold at least " + bytes;
      if (reason.at) {
        const Graph& graph = problem.graph();
        moment +=
            " when op " + shown_name(graph.notes(*reason.at), graph.key(*reason.at)) + " starts";
      }
      return moment + ", and their limits are " + format_bytes(reason.room_bytes) + " together";
    }
  }
  PARDNN_CHECK(false);
}

}  // namespace pardnn
