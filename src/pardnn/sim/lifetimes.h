// Lifetimes: which buffers every device holds and what keeps each of them (rules M, V and X1 of
// docs/model.md).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/problem/problem.h"
#include "pardnn/sim/device_mask.h"
#include "pardnn/sim/schedule.h"

namespace pardnn {

// A buffer that lives for a part of the step: a tensor's own, numbered like the tensor, or the copy
// that a transfer makes, numbered by the transfer, after all tensors.
enum class BufferId : std::uint32_t {};

// What keeps a buffer: uses of the tensor that lies in it and of all aliases of it on the device.
struct BufferUse {
  std::int64_t last_arrival_ns = 0;  // of their transfers to other devices; 0: none
  std::uint32_t last_position = 0;   // of the last op of the device that makes or reads one
  bool is_allocated = false;         // not for aliases, nor where a buffer is taken over
  bool is_fetched = false;           // one of them is
  std::optional<TensorId> taken_by;  // the output that takes the buffer over (rule M4b)
};

// The buffer of an `every` op's tensor and the devices that hold it all step.
struct EveryBuffer {
  TensorId tensor;
  DeviceMask held_at;
};

// One sweep over the tensors by id. An alias resolves to the buffer behind its input on its own
// device, an own one or a copy (rule M3), which is known by then. Variables and the buffers of
// `every` ops last all step and are not among these. O(ops + edges + transfers).
class Lifetimes {
 public:
  // Keeps both references.
  Lifetimes(const Problem& problem, const Schedule& schedule);

  // For the schedule as it is now; all that follows speaks of that one.
  void compute(const Table<VariableId, DeviceId>& variables);

  const Table<BufferId, BufferUse>& uses() const { return uses_; }
  BufferId own(TensorId tensor) const { return BufferId{index(tensor)}; }
  BufferId copy(std::uint32_t transfer) const {
    return BufferId{static_cast<std::uint32_t>(tensor_count_) + transfer};
  }
  // The buffer behind a tensor on the device where it is made; nothing: one that lasts all step.
  std::optional<BufferId> behind(TensorId tensor) const { return behind_[tensor]; }
  // The buffer behind an input of an op on `device`.
  std::optional<BufferId> behind(const Input& input, DeviceId device) const;
  std::int64_t bytes(BufferId buffer) const;
  // The end, where the buffer is not taken over.
  std::int64_t end_ns(const BufferUse& use, DeviceId device) const;

  const std::vector<EveryBuffer>& every_buffers() const { return every_buffers_; }
  // What a device holds all step: reserve, variables, buffers of `every` ops.
  std::int64_t resident_bytes(DeviceId device) const { return resident_bytes_[device]; }

 private:
  void use_outputs(OpId op);
  void use_tensor(TensorId tensor, OpId producer);
  void hold_resident(const Table<VariableId, DeviceId>& variables);
  void take_over();  // takeover.cc
  bool may_pass(BufferId buffer, OpId op, std::uint32_t input, TensorId output) const;

  const Problem& problem_;
  const Graph& graph_;
  const Schedule& schedule_;
  std::size_t tensor_count_;
  std::vector<TensorId> takers_;  // outputs that may take over a buffer, ascending
  // Tensors of `every` ops that ordinary ops read, each with its row among every_buffers_.
  std::vector<std::pair<TensorId, std::size_t>> every_tensors_;

  Table<BufferId, BufferUse> uses_;
  Table<TensorId, std::optional<BufferId>> behind_;
  std::vector<EveryBuffer> every_buffers_;
  Table<DeviceId, std::int64_t> resident_bytes_;
};

}  // namespace pardnn
