// CutState: lumps on devices, what the wires between them cost, and how far the devices are above
// their caps, kept up to date while lumps move.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pardnn/partition/cut_weights.h"
#include "pardnn/sim/device_mask.h"

namespace pardnn {

// What is better: less above the caps, then less cut.
struct CutCost {
  std::int64_t excess = 0, cut_ns = 0;
  friend auto operator<=>(const CutCost&, const CutCost&) = default;
};

class CutState {
 public:
  // No lump is anywhere yet.
  CutState(const CutGraph& graph, const CutCaps& caps, std::size_t devices);

  const CutGraph& graph() const { return graph_; }
  const CutCost& cost() const { return cost_; }
  std::optional<DeviceId> device(LumpId lump) const { return device_[lump]; }
  std::size_t device_count() const { return devices_; }
  // Members of the wire on the device.
  std::uint32_t members(WireId wire, DeviceId device) const {
    return members_[index(wire) * devices_ + index(device)];
  }
  bool is_cut(WireId wire) const;
  bool exceeds(DeviceId device) const;
  std::int64_t load(DeviceId device) const { return loads_of(device)[0]; }

  void move(LumpId lump, DeviceId to);

  // What the cost would grow by if the lump went there.
  std::int64_t more_excess(LumpId lump, DeviceId to) const;

  struct Move {
    std::int64_t gain_ns = 0;  // that the cut falls by
    std::int64_t more_excess = 0;
    DeviceId to{};
  };
  enum class Where : std::uint8_t { kAlongWires, kAnywhere };
  // Of the other devices where it may be, and one of its wires is unless it may be anywhere, that
  // of the greatest gain among those where the excess grows by `most_excess` at most; ties to less
  // excess, then the least device. The lump must be somewhere.
  std::optional<Move> best_move(LumpId lump, std::int64_t most_excess, Where where);

 private:
  const std::int64_t* loads_of(DeviceId device) const {
    return loads_.data() + index(device) * graph_.weight_count;
  }
  std::int64_t excess_change(LumpId lump, DeviceId device, int sign) const;
  void weigh(LumpId lump, DeviceId device, int sign);
  void come(LumpId lump, DeviceId to);
  void leave(LumpId lump, DeviceId from);

  const CutGraph& graph_;
  const CutCaps& caps_;
  const std::size_t devices_;
  Table<LumpId, std::optional<DeviceId>> device_;
  std::vector<std::uint32_t> members_;  // wires x devices
  Table<WireId, DeviceMask> there_;     // devices that the wire has members on
  Table<WireId, std::uint8_t> spread_;  // how many those are
  std::vector<std::int64_t> loads_;     // devices x weights
  CutCost cost_;
  Table<DeviceId, std::int64_t> pull_ns_;  // of the lump in question
};

}  // namespace pardnn
