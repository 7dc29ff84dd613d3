// Row `chunks`: the ops in the order in which they run, cut into one contiguous piece per device.
#include "pardnn/partition/chunks.h"

#include <algorithm>
#include <cstdlib>

#include "pardnn/partition/orders.h"
#include "pardnn/partition/times.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kWhole = 1'000'000;  // shares are parts of it

struct UnitWeights {
  Table<UnitId, std::int64_t> time_ns, bytes;
  std::int64_t total_ns = 0, total_bytes = 0;
};

UnitWeights weigh(const Problem& problem) {
  UnitWeights weights{.time_ns = Table<UnitId, std::int64_t>(problem.units().size(), 0),
                      .bytes = Table<UnitId, std::int64_t>(problem.units().size(), 0)};
  for (const UnitId unit : problem.units()) {
    weights.bytes[unit] = bytes_of(problem, unit);
    for (const OpId op : problem.ops(unit)) {
      weights.time_ns[unit] = saturating_add(weights.time_ns[unit], problem.mean_duration_ns(op));
    }
    weights.total_ns = saturating_add(weights.total_ns, weights.time_ns[unit]);
    weights.total_bytes = saturating_add(weights.total_bytes, weights.bytes[unit]);
  }
  return weights;
}

// Part of the whole, in kWhole-ths.
std::int64_t share(std::int64_t part, Wide whole) {
  return whole <= 0 ? 0 : static_cast<std::int64_t>(Wide{part} * kWhole / whole);
}

// Each device's share of the pieces: of speed (what it would take for all that is allowed there)
// and of memory, weighted as the pieces are.
Table<DeviceId, std::int64_t> device_shares(const Problem& problem, SplitWeights weights) {
  Table<DeviceId, std::int64_t> speed(problem.device_count(), 0), room(problem.device_count(), 0);
  Wide all_speed = 0, all_room = 0;
  for (const DeviceId device : problem.devices()) {
    Wide mean_ns = 0, here_ns = 0;
    for (const OpId op : problem.graph().ops()) {
      if (problem.graph().is_every(op)) continue;
      if (!problem.is_allowed(*problem.unit(op), device)) continue;
      mean_ns += problem.mean_duration_ns(op);
      here_ns += problem.duration_ns(op, device);
    }
    speed[device] = here_ns == 0 ? 0 : static_cast<std::int64_t>(mean_ns * kWhole / here_ns);
    room[device] =
        std::max<std::int64_t>(0, problem.limit_bytes(device) - problem.reserve_bytes(device));
    all_speed += speed[device];
    all_room += room[device];
  }
  Table<DeviceId, std::int64_t> shares(problem.device_count(), 0);
  for (const DeviceId device : problem.devices()) {
    shares[device] = (weights.time * share(speed[device], all_speed) +
                      weights.bytes * share(room[device], all_room)) /
                     (weights.time + weights.bytes);
  }
  return shares;
}

DeviceId nearest_allowed(const Problem& problem, UnitId unit, DeviceId wanted) {
  std::optional<DeviceId> answer;
  const auto distance = [&](DeviceId device) {
    return std::abs(static_cast<std::int64_t>(index(device)) -
                    static_cast<std::int64_t>(index(wanted)));
  };
  for (const DeviceId device : problem.devices()) {
    if (!problem.is_allowed(unit, device)) continue;
    if (!answer || distance(device) < distance(*answer)) answer = device;
  }
  return *answer;
}

}  // namespace

UnitPlacement cut_into_pieces(const Problem& problem, const std::vector<UnitId>& units,
                              SplitWeights weights) {
  const UnitWeights weight = weigh(problem);
  const Table<DeviceId, std::int64_t> shares = device_shares(problem, weights);
  std::int64_t all_shares = 0;
  for (const DeviceId device : problem.devices()) all_shares += shares[device];
  const std::int64_t both = weights.time + weights.bytes;

  UnitPlacement placement(problem.units().size(), DeviceId{});
  Table<DeviceId, std::int64_t> bytes(problem.device_count(), 0);
  Wide passed_ns = 0, passed_bytes = 0;  // before the middle of the unit, doubled
  DeviceId device{};
  std::int64_t end = shares[device];
  for (const UnitId unit : units) {
    const Wide middle_ns = passed_ns + weight.time_ns[unit];
    const Wide middle_bytes = passed_bytes + weight.bytes[unit];
    const auto part = [](Wide doubled, std::int64_t total) {
      return total == 0 ? 0 : static_cast<std::int64_t>(doubled * kWhole / 2 / total);
    };
    const std::int64_t at = (weights.time * part(middle_ns, weight.total_ns) +
                             weights.bytes * part(middle_bytes, weight.total_bytes)) /
                            both * all_shares / kWhole;
    while (at >= end && index(device) + 1 < problem.device_count()) {
      device = next(device);
      end += shares[device];
    }
    placement[unit] = nearest_allowed(problem, unit, device);
    bytes[placement[unit]] = saturating_add(bytes[placement[unit]], weight.bytes[unit]);
    passed_ns += Wide{2} * weight.time_ns[unit];
    passed_bytes += Wide{2} * weight.bytes[unit];
  }
  place_idle_units(problem, bytes, placement);
  return placement;
}

Proposal chunks(const Problem& problem, const Run&) {
  const Graph& graph = problem.graph();
  Proposal proposal;
  proposal.order =
      graph.has_given_order() ? given_order(graph) : order_by(graph, earliest_starts(problem));
  proposal.placement = cut_into_pieces(problem, lineup(problem, proposal.order), {});
  return proposal;
}

}  // namespace pardnn
