// Scheduler: when every op starts and every transfer runs (rules D and T of docs/model.md).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/sim/device_mask.h"

namespace pardnn {

// What a run of the scheduler leaves. Rows of `every` ops are 0 and mean nothing.
struct Schedule {
  Table<OpId, DeviceId> device;
  Table<OpId, std::uint32_t> position;  // in the sequence of its device
  Table<OpId, std::int64_t> start_ns, finish_ns;
  // In the order of requests by one op: its outputs by number, then its control edges; each to
  // its destinations in ascending order. The transfers of a tensor lie side by side.
  std::vector<Transfer> transfers;
  Table<TensorId, std::uint32_t> first_transfer;
  Table<TensorId, std::uint8_t> transfer_count;
  Sequences sequences;
  // All ordinary ops; each one after those it waits for, through edges and sequences alike.
  std::vector<OpId> order;
  std::int64_t step_ns = 0;
  std::int64_t bytes_sent = 0;

  // Position of the tensor's transfer to `to` among `transfers`; there must be one.
  std::uint32_t transfer_of(TensorId tensor, DeviceId to) const {
    std::uint32_t slot = first_transfer[tensor];
    while (transfers[slot].to != to) ++slot;
    return slot;
  }
};

// No heap of events. Under Dispatch::kSequence the start of an op is fixed by its inputs and the
// op before it, so devices run ahead of each other as far as their inputs are known. A transfer on
// channels that only one device sends through is granted at once, since that device's requests come
// in order. A transfer on channels shared by senders waits until every device is stuck: whatever is
// requested later then depends on a waiting request and is later than the least of them, so that
// one is next (rule T4). Under Dispatch::kFifo the device that decides earliest goes first.
// O(ops + edges + transfers), times log for shared channels and kFifo.
class Scheduler {
 public:
  explicit Scheduler(const Problem& problem);

  // False when this is no plan: sequences and edges form a cycle (rule D4), or a tensor has to go
  // where no link leads (rule T9). The sequences must hold every ordinary op once, on its device.
  bool run(const Placement& placement, Sequences& sequences);
  const Schedule& schedule() const { return schedule_; }

 private:
  struct Ready {  // an op that could start
    std::int64_t ns;
    OpId op;
    friend auto operator<=>(const Ready&, const Ready&) = default;
  };

  struct Pending {  // a transfer that waits to be granted, in the order of grants (rule T3)
    std::int64_t request_ns;
    OpId producer;
    std::uint64_t output;  // control edges (rule T7) come after all outputs
    DeviceId to;
    std::uint32_t slot;
    friend auto operator<=>(const Pending&, const Pending&) = default;
  };

  void count_inputs();
  void find_private_links();
  void reset(const Placement& placement);
  void set_positions(const Sequences& sequences);
  void run_sequences(const Sequences& sequences);
  void run_device(DeviceId device, std::span<const OpId> sequence);
  void run_fifo(Sequences& sequences);
  std::optional<DeviceId> earliest_decision(std::int64_t& at_ns) const;

  void start(OpId op, std::int64_t at_ns);
  void send(OpId op, std::optional<TensorId> tensor, std::span<const OpId> readers);
  void request(const Transfer& transfer, std::span<const OpId> readers);
  void grant(std::uint32_t slot, std::span<const OpId> readers);
  void grant_least_pending();
  void input_is_there(OpId op, std::int64_t ns);

  const Problem& problem_;
  const Graph& graph_;
  Table<OpId, std::uint32_t> input_count_;  // tensors of ordinary ops and control edges
  std::size_t ordinary_count_ = 0;
  std::vector<bool> private_link_;  // devices x devices: its channels have one sender

  Schedule schedule_;
  Table<OpId, std::uint32_t> waits_for_;  // inputs that are not there yet
  Table<OpId, std::int64_t> ready_ns_;    // of those that are
  Table<DeviceId, std::int64_t> free_ns_;
  Table<ChannelId, std::int64_t> channel_free_ns_;
  std::vector<Pending> pending_;  // heap, the least first

  Table<DeviceId, std::uint32_t> next_;        // kSequence: position of the next op
  Table<DeviceId, std::optional<OpId>> head_;  // kSequence: that op
  std::vector<DeviceId> runnable_;             // kSequence: devices whose next op may be ready
  Table<DeviceId, std::vector<Ready>> ready_;  // kFifo: heap of ops whose inputs are known
};

}  // namespace pardnn
