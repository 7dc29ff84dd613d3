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

std::int64_t share(Wide part, Wide whole) {
  return whole <= 0 ? 0 : static_cast<std::int64_t>(part * kWhole / whole);
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

// Where one unit after another lies on a line that is as long as all shares together.
class Ruler {
 public:
  Ruler(const std::vector<UnitId>& units, const SplitWeights& weights, std::int64_t time,
        std::int64_t bytes, std::int64_t length)
      : weights_(weights), time_(time), bytes_(bytes), length_(length) {
    for (const UnitId unit : units) {
      all_ns_ += weights.time_ns[unit];
      all_bytes_ += weights.bytes[unit];
    }
  }

  // The middle of the next unit.
  std::int64_t middle_of(UnitId unit) {
    const Wide ns = twice_ns_ + weights_.time_ns[unit];
    const Wide bytes = twice_bytes_ + weights_.bytes[unit];
    twice_ns_ = ns + weights_.time_ns[unit];
    twice_bytes_ = bytes + weights_.bytes[unit];
    const std::int64_t part =
        (time_ * share(ns, 2 * all_ns_) + bytes_ * share(bytes, 2 * all_bytes_)) / (time_ + bytes_);
    return static_cast<std::int64_t>(Wide{part} * length_ / kWhole);
  }

 private:
  const SplitWeights& weights_;
  const std::int64_t time_, bytes_, length_;
  Wide all_ns_ = 0, all_bytes_ = 0;
  Wide twice_ns_ = 0, twice_bytes_ = 0;  // of the units before, doubled
};

}  // namespace

SplitWeights weigh_units(const Problem& problem) {
  SplitWeights weights{.time_ns = Table<UnitId, std::int64_t>(problem.units().size(), 0),
                       .bytes = Table<UnitId, std::int64_t>(problem.units().size(), 0)};
  for (const UnitId unit : problem.units()) {
    weights.bytes[unit] = bytes_of(problem, unit);
    for (const OpId op : problem.ops(unit)) {
      weights.time_ns[unit] = saturating_add(weights.time_ns[unit], problem.mean_duration_ns(op));
    }
  }
  return weights;
}

Shares device_shares(const Problem& problem, std::int64_t time, std::int64_t bytes) {
  Shares speed(problem.device_count(), 0), room(problem.device_count(), 0);
  Wide all_speed = 0, all_room = 0;
  for (const DeviceId device : problem.devices()) {
    // How much faster than the mean it is with what is allowed there.
    Wide mean_ns = 0, here_ns = 0;
    for (const OpId op : problem.graph().ops()) {
      if (problem.graph().is_every(op)) continue;
      if (!problem.is_allowed(*problem.unit(op), device)) continue;
      mean_ns += problem.mean_duration_ns(op);
      here_ns += problem.duration_ns(op, device);
    }
    speed[device] = share(mean_ns, here_ns);
    room[device] =
        std::max<std::int64_t>(0, problem.limit_bytes(device) - problem.reserve_bytes(device));
    all_speed += speed[device];
    all_room += room[device];
  }
  Shares shares(problem.device_count(), 0);
  for (const DeviceId device : problem.devices()) {
    shares[device] =
        (time * share(speed[device], all_speed) + bytes * share(room[device], all_room)) /
        (time + bytes);
  }
  return shares;
}

UnitPlacement cut_into_pieces(const Problem& problem, const std::vector<UnitId>& units,
                              const SplitWeights& weights, std::int64_t time, std::int64_t bytes,
                              const Shares& shares) {
  std::int64_t length = 0;
  for (const DeviceId device : problem.devices()) length += shares[device];
  Ruler ruler(units, weights, time, bytes, length);
  UnitPlacement placement(problem.units().size(), DeviceId{});
  Table<DeviceId, std::int64_t> given(problem.device_count(), 0);
  DeviceId device{};
  std::int64_t end = shares[device];
  for (const UnitId unit : units) {
    const std::int64_t middle = ruler.middle_of(unit);
    while (middle >= end && index(device) + 1 < problem.device_count()) {
      device = next(device);
      end += shares[device];
    }
    placement[unit] = nearest_allowed(problem, unit, device);
    given[placement[unit]] = saturating_add(given[placement[unit]], weights.bytes[unit]);
  }
  place_idle_units(problem, std::move(given), placement);
  return placement;
}

Proposal chunks(const Problem& problem, const Run&) {
  const Graph& graph = problem.graph();
  Proposal proposal;
  proposal.order =
      graph.has_given_order() ? given_order(graph) : order_by(graph, earliest_starts(problem));
  proposal.placement = cut_into_pieces(problem, lineup(problem, proposal.order),
                                       weigh_units(problem), 1, 1, device_shares(problem, 1, 1));
  return proposal;
}

}  // namespace pardnn
