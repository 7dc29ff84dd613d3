// CutState: lumps on devices, what the wires between them cost, and how full the devices are.
#include "pardnn/partition/cut_state.h"

#include <algorithm>
#include <tuple>

namespace pardnn {

CutState::CutState(const CutGraph& graph, const CutCaps& caps, std::size_t devices)
    : graph_(graph),
      caps_(caps),
      devices_(devices),
      device_(graph.lumps().size()),
      members_(graph.crossing_ns.size() * devices, 0),
      there_(graph.crossing_ns.size()),
      spread_(graph.crossing_ns.size(), 0),
      loads_(devices * graph.weight_count, 0),
      pull_ns_(devices, 0) {}

bool CutState::is_cut(WireId wire) const { return spread_[wire] > 1; }

bool CutState::exceeds(DeviceId device) const {
  const std::span<const std::int64_t> caps = caps_.of(device);
  for (std::size_t n = 0; n < caps.size(); ++n) {
    if (loads_of(device)[n] > caps[n]) return true;
  }
  return false;
}

std::int64_t CutState::excess_change(LumpId lump, DeviceId device, int sign) const {
  const std::span<const std::int64_t> caps = caps_.of(device), weights = graph_.weights_of(lump);
  const std::int64_t* loads = loads_of(device);
  std::int64_t change = 0;
  for (std::size_t n = 0; n < weights.size(); ++n) {
    const std::int64_t over = loads[n] - caps[n];
    change += std::max<std::int64_t>(0, over + sign * weights[n]) - std::max<std::int64_t>(0, over);
  }
  return change;
}

std::int64_t CutState::more_excess(LumpId lump, DeviceId to) const {
  return excess_change(lump, to, +1) +
         (device_[lump].has_value() ? excess_change(lump, *device_[lump], -1) : 0);
}

void CutState::weigh(LumpId lump, DeviceId device, int sign) {
  cost_.excess += excess_change(lump, device, sign);
  const std::span<const std::int64_t> weights = graph_.weights_of(lump);
  for (std::size_t n = 0; n < weights.size(); ++n) {
    loads_[index(device) * weights.size() + n] += sign * weights[n];
  }
}

void CutState::come(LumpId lump, DeviceId to) {
  for (const WireId wire : graph_.wires[lump]) {
    if (++members_[index(wire) * devices_ + index(to)] > 1) continue;
    there_[wire].set(to);
    if (++spread_[wire] > 1) cost_.cut_ns += graph_.crossing_ns[wire];
  }
}

void CutState::leave(LumpId lump, DeviceId from) {
  for (const WireId wire : graph_.wires[lump]) {
    if (--members_[index(wire) * devices_ + index(from)] > 0) continue;
    there_[wire].reset(from);
    if (--spread_[wire] > 0) cost_.cut_ns -= graph_.crossing_ns[wire];
  }
}

void CutState::move(LumpId lump, DeviceId to) {
  if (device_[lump].has_value()) {
    weigh(lump, *device_[lump], -1);
    leave(lump, *device_[lump]);
  }
  device_[lump] = to;
  weigh(lump, to, +1);
  come(lump, to);
}

std::optional<CutState::Move> CutState::best_move(LumpId lump, std::int64_t most_excess,
                                                  Where where) {
  const DeviceId from = *device_[lump];
  const DeviceSet& allowed = graph_.allowed[lump];
  std::int64_t alone_ns = 0, all_ns = 0;  // of the wires that hold it alone where it is; of all
  DeviceMask near;
  for (const WireId wire : graph_.wires[lump]) {
    const std::int64_t crossing_ns = graph_.crossing_ns[wire];
    all_ns += crossing_ns;
    if (members(wire, from) == 1) alone_ns += crossing_ns;
    if (spread_[wire] == 1) continue;
    there_[wire].for_each([&](DeviceId device) {
      if (!allowed[index(device)]) return;
      near.set(device);
      pull_ns_[device] += crossing_ns;
    });
  }
  std::optional<Move> best;
  const std::int64_t lost_ns = all_ns - alone_ns;
  const auto consider = [&](DeviceId to) {
    if (to == from || !allowed[index(to)]) return;
    const std::int64_t gain_ns = pull_ns_[to] - lost_ns;
    if (best.has_value() && gain_ns < best->gain_ns) return;
    const std::int64_t excess = more_excess(lump, to);
    if (excess > most_excess) return;
    if (best.has_value() && gain_ns == best->gain_ns && excess >= best->more_excess) return;
    best = Move{.gain_ns = gain_ns, .more_excess = excess, .to = to};
  };
  if (where == Where::kAnywhere) {
    for (const DeviceId to : pull_ns_.ids()) consider(to);
  } else {
    near.for_each(consider);
  }
  near.for_each([&](DeviceId device) { pull_ns_[device] = 0; });
  return best;
}

}  // namespace pardnn
