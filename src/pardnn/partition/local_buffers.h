// LocalBuffers: which buffers of which device every op of a placement reads and makes, aliases
// followed, with what is left to read of each; the bookkeeping of memory-aware list schedulers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// Take-overs (rule M4b) are not followed: what an op takes and frees evens out over its own run,
// which is all that a choice between ready ops needs. Copies count from the producer's finish, sent
// buffers until then. O(ops + edges).
class LocalBuffers {
 public:
  LocalBuffers(const Problem& problem, const UnitPlacement& placement);

  // Bytes on the device now; before the first op: variables, `every` values and the reserve.
  std::int64_t used_bytes(DeviceId device) const { return used_[device]; }
  // Bytes that the op needs when it starts.
  std::int64_t taken_bytes(OpId op) const { return taken_[op]; }
  // Bytes that the op leaves behind less those it found, if it ran now.
  std::int64_t growth_bytes(OpId op) const { return kept_[op] - freed_[op]; }

  void start(OpId op) { used_[device(op)] += taken_[op]; }
  // Calls changed(op) for every op whose growth fell because it is now the last reader of a buffer.
  template <class Changed>
  void finish(OpId op, Changed changed) {
    used_[device(op)] += kept_[op] - taken_[op];
    for (const std::uint32_t slot : copies_[op]) used_[slots_[slot].device] += slots_[slot].bytes;
    for (const std::uint32_t slot : reads_[op]) {
      if (const std::optional<OpId> last = read(slot, op)) changed(*last);
    }
  }

 private:
  struct Slot {
    DeviceId device;
    std::int64_t bytes = 0;
    std::uint32_t readers = 0;     // ops still to read it, or an alias of it, on its device
    std::uint64_t reader_sum = 0;  // of their ids: when one is left, this is it
    bool fetched = false;
  };
  using SlotOfInput = std::vector<std::optional<std::uint32_t>>;

  DeviceId device(OpId op) const { return device_[op]; }
  std::optional<OpId> read(std::uint32_t slot, OpId reader);
  void count_resident_bytes(const Problem& problem, const UnitPlacement& placement);
  std::optional<std::uint32_t> slot_of(const Graph& graph, TensorId tensor, DeviceId device) const;
  void add_outputs(const Problem& problem, OpId op);
  void add_reads(const Graph& graph, OpId op);

  Table<OpId, DeviceId> device_;
  std::vector<Slot> slots_;
  Table<TensorId, std::optional<std::uint32_t>> own_;       // slot behind it on its op's device
  Table<TensorId, std::vector<std::uint32_t>> copy_slots_;  // on other devices
  Lists<OpId, std::uint32_t> reads_, copies_;
  Table<OpId, std::int64_t> taken_, kept_, freed_;
  Table<DeviceId, std::int64_t> used_;
};

}  // namespace pardnn
