// Row `one-device`: everything on the device where the step is shortest.
#include "pardnn/partition/one_device.h"

#include <tuple>

#include "pardnn/partition/orders.h"
#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

DeviceId best_device(const Problem& problem) {
  std::optional<std::tuple<std::size_t, std::int64_t, std::int64_t>> best;  // least first
  DeviceId answer{};
  for (const DeviceId device : problem.devices()) {
    std::size_t refused = 0;
    std::int64_t total_ns = 0;
    for (const UnitId unit : problem.units()) {
      if (!problem.is_allowed(unit, device)) {
        ++refused;
        continue;
      }
      for (const OpId op : problem.ops(unit)) {
        total_ns = saturating_add(total_ns, problem.duration_ns(op, device));
      }
    }
    const std::tuple key(refused, total_ns, -problem.limit_bytes(device));
    if (best.has_value() && *best <= key) continue;
    best = key;
    answer = device;
  }
  return answer;
}

DeviceId roomiest_allowed(const Problem& problem, UnitId unit) {
  std::optional<DeviceId> answer;
  for (const DeviceId device : problem.devices()) {
    if (!problem.is_allowed(unit, device)) continue;
    if (!answer || problem.limit_bytes(device) > problem.limit_bytes(*answer)) answer = device;
  }
  return *answer;
}

}  // namespace

Proposal one_device(const Problem& problem, const Run&) {
  const DeviceId device = best_device(problem);
  Proposal proposal;
  proposal.placement = UnitPlacement(problem.units().size(), device);
  for (const UnitId unit : problem.units()) {
    if (!problem.is_allowed(unit, device)) {
      proposal.placement[unit] = roomiest_allowed(problem, unit);
    }
  }
  const Times times(problem);
  const auto priority = bottom_levels(problem, times, proposal.placement);
  proposal.order = list_order(problem, times, proposal.placement, priority, Take::kWithinLimit);
  return proposal;
}

}  // namespace pardnn
