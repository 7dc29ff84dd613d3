// Loads: per device, the work there and the time of the transfers it receives, while units move.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/plan/plan.h"
#include "pardnn/partition/flow.h"

namespace pardnn {

class Loads {
 public:
  Loads(const Problem& problem, const Flow& flow, UnitPlacement placement);

  const UnitPlacement& placement() const { return placement_; }
  DeviceId device(NodeId node) const { return placement_[unit_[node]]; }
  UnitId unit(NodeId node) const { return unit_[node]; }
  std::int64_t load_ns(DeviceId device) const { return load_ns_[device]; }
  std::int64_t greatest_ns() const;

  // O(values the unit makes and reads, and their readers). Must be allowed there.
  void move(UnitId unit, DeviceId to);

 private:
  void receive(ValueId value, int sign);

  const Problem& problem_;
  const Flow& flow_;
  UnitPlacement placement_;
  Table<NodeId, UnitId> unit_;
  Table<UnitId, std::vector<NodeId>> nodes_;
  Table<DeviceId, std::int64_t> load_ns_;
};

}  // namespace pardnn
