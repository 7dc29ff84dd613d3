#include "pardnn/sim/schedule.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "pardnn/base/error.h"

namespace pardnn {
namespace {

// Sets of channels that links join, each with the device that sends through it, if it is one.
class ChannelSets {
 public:
  explicit ChannelSets(std::size_t count) : parent_(count), sender_(count), is_shared_(count) {
    for (ChannelId channel : parent_.ids()) parent_[channel] = channel;
  }
  ChannelId root(ChannelId channel) {
    while (parent_[channel] != channel) {
      channel = parent_[channel] = parent_[parent_[channel]];
    }
    return channel;
  }
  void join(ChannelId a, ChannelId b) { parent_[root(a)] = root(b); }
  // After all joins.
  void add_sender(ChannelId channel, DeviceId sender) {
    const ChannelId set = root(channel);
    if (sender_[set] && *sender_[set] != sender) is_shared_[set] = true;
    sender_[set] = sender;
  }
  bool is_shared(ChannelId channel) { return is_shared_[root(channel)]; }

 private:
  Table<ChannelId, ChannelId> parent_;
  Table<ChannelId, std::optional<DeviceId>> sender_;
  Table<ChannelId, bool> is_shared_;
};

}  // namespace

Scheduler::Scheduler(const Problem& problem) : problem_(problem), graph_(problem.graph()) {
  count_inputs();
  find_private_links();
}

void Scheduler::count_inputs() {
  input_count_.resize(graph_.ops().size());
  for (OpId op : graph_.ops()) {
    if (graph_.is_every(op)) continue;
    ++ordinary_count_;
    input_count_[op] += static_cast<std::uint32_t>(graph_.controls(op).size());
    for (TensorId tensor : graph_.outputs(op)) {
      for (OpId reader : graph_.readers(tensor)) ++input_count_[reader];
    }
  }
}

void Scheduler::find_private_links() {
  const Machine& machine = problem_.machine();
  ChannelSets sets(machine.channels.size());
  for (const std::optional<Link>& link : machine.links) {
    if (!link) continue;
    for (ChannelId channel : link->channels) sets.join(channel, link->channels.front());
  }
  for (DeviceId from : problem_.devices()) {
    for (DeviceId to : problem_.devices()) {
      if (problem_.has_link(from, to)) {
        sets.add_sender(problem_.link(from, to).channels.front(), from);
      }
    }
  }
  for (const std::optional<Link>& link : machine.links) {
    private_link_.push_back(link && !sets.is_shared(link->channels.front()));
  }
}

bool Scheduler::run(const Placement& placement, Sequences& sequences) {
  reset(placement);
  if (problem_.rules().dispatch == Dispatch::kFifo) {
    run_fifo(sequences);
    set_positions(sequences);
  } else {
    set_positions(sequences);
    run_sequences(sequences);
  }
  schedule_.sequences = sequences;
  return schedule_.order.size() == ordinary_count_;
}

void Scheduler::reset(const Placement& placement) {
  const std::size_t ops = graph_.ops().size(), tensors = graph_.tensors().size();
  PARDNN_CHECK(placement.ops.size() == ops);
  schedule_.device.resize(ops);
  for (OpId op : graph_.ops()) {
    if (!graph_.is_every(op)) schedule_.device[op] = placement.ops[op].value();
  }
  schedule_.position.resize(ops);
  schedule_.start_ns.assign(ops, 0);
  schedule_.finish_ns.assign(ops, 0);
  schedule_.transfers.clear();
  schedule_.first_transfer.resize(tensors);
  schedule_.transfer_count.assign(tensors, 0);
  schedule_.order.clear();
  schedule_.order.reserve(ordinary_count_);
  schedule_.step_ns = schedule_.bytes_sent = 0;
  waits_for_ = input_count_;
  ready_ns_.assign(ops, 0);
  free_ns_.assign(problem_.device_count(), 0);
  channel_free_ns_.assign(problem_.machine().channels.size(), 0);
  pending_.clear();
  head_.assign(problem_.device_count(), std::nullopt);
}

void Scheduler::set_positions(const Sequences& sequences) {
  PARDNN_CHECK(sequences.size() == problem_.device_count());
  for (DeviceId device : problem_.devices()) {
    std::uint32_t position = 0;
    for (OpId op : sequences[device]) {
      PARDNN_CHECK(!graph_.is_every(op) && schedule_.device[op] == device);
      schedule_.position[op] = position++;
    }
  }
  // An op that is missing is never started; one that is there twice has but one position.
  for (DeviceId device : problem_.devices()) {
    std::uint32_t position = 0;
    for (OpId op : sequences[device]) PARDNN_CHECK(schedule_.position[op] == position++);
  }
}

void Scheduler::run_sequences(const Sequences& sequences) {
  next_.assign(problem_.device_count(), 0);
  runnable_.clear();
  for (DeviceId device : problem_.devices()) {
    if (!sequences[device].empty()) head_[device] = sequences[device].front();
    runnable_.push_back(device);
  }
  while (true) {
    if (!runnable_.empty()) {
      const DeviceId device = runnable_.back();
      runnable_.pop_back();
      run_device(device, sequences[device]);
    } else if (!pending_.empty()) {
      grant_least_pending();
    } else {
      return;
    }
  }
}

// D1: strictly in order, each op as soon as it is ready and the one before it has finished.
void Scheduler::run_device(DeviceId device, std::span<const OpId> sequence) {
  std::uint32_t& position = next_[device];
  while (position < sequence.size() && waits_for_[sequence[position]] == 0) {
    const OpId op = sequence[position++];
    head_[device].reset();
    start(op, std::max(free_ns_[device], ready_ns_[op]));
  }
  if (position < sequence.size()) head_[device] = sequence[position];
}

// D2. Everything that is not known when a device decides at T comes of an op that starts at T or
// later and so finishes after T, or of a transfer that is not granted yet: those requested up to
// T are granted first.
void Scheduler::run_fifo(Sequences& sequences) {
  ready_.resize(problem_.device_count());
  for (auto& ready : ready_) ready.clear();
  sequences.resize(problem_.device_count());
  for (auto& sequence : sequences) sequence.clear();
  for (OpId op : graph_.ops()) {
    if (!graph_.is_every(op) && input_count_[op] == 0) {
      ready_[schedule_.device[op]].push_back({0, op});
    }
  }
  while (true) {
    std::int64_t at_ns = 0;
    const std::optional<DeviceId> device = earliest_decision(at_ns);
    if (!pending_.empty() && (!device || pending_.front().request_ns <= at_ns)) {
      grant_least_pending();
      continue;
    }
    if (!device) return;
    auto& ready = ready_[*device];
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const OpId op = ready.back().op;
    ready.pop_back();
    sequences[*device].push_back(op);
    start(op, at_ns);
  }
}

std::optional<DeviceId> Scheduler::earliest_decision(std::int64_t& at_ns) const {
  std::optional<DeviceId> earliest;
  for (DeviceId device : problem_.devices()) {
    if (ready_[device].empty()) continue;
    const std::int64_t ns = std::max(free_ns_[device], ready_[device].front().ns);
    if (earliest && ns >= at_ns) continue;
    earliest = device;
    at_ns = ns;
  }
  return earliest;
}

void Scheduler::start(OpId op, std::int64_t at_ns) {
  const DeviceId device = schedule_.device[op];
  const std::int64_t finish_ns = at_ns + problem_.duration_ns(op, device);
  schedule_.start_ns[op] = at_ns;
  schedule_.finish_ns[op] = free_ns_[device] = finish_ns;
  schedule_.step_ns = std::max(schedule_.step_ns, finish_ns);
  schedule_.order.push_back(op);
  for (TensorId tensor : graph_.outputs(op)) send(op, tensor, graph_.readers(tensor));
  send(op, std::nullopt, graph_.control_readers(op));
}

// T1, T7: readers on the same device have it at the finish; one transfer for each other device.
void Scheduler::send(OpId op, std::optional<TensorId> tensor, std::span<const OpId> readers) {
  const DeviceId device = schedule_.device[op];
  const std::int64_t finish_ns = schedule_.finish_ns[op];
  DeviceMask destinations;
  for (OpId reader : readers) {
    if (schedule_.device[reader] == device) {
      input_is_there(reader, finish_ns);
    } else {
      destinations.set(schedule_.device[reader]);
    }
  }
  Transfer transfer{
      .producer = op, .output = {}, .from = device, .to = device, .request_ns = finish_ns};
  if (tensor) {
    schedule_.first_transfer[*tensor] = static_cast<std::uint32_t>(schedule_.transfers.size());
    transfer.output = graph_.tensor(*tensor).number;
    transfer.bytes = problem_.bytes(*tensor);
  }
  destinations.for_each([&](DeviceId to) {
    if (tensor) ++schedule_.transfer_count[*tensor];
    transfer.to = to;
    request(transfer, readers);
  });
}

void Scheduler::request(const Transfer& transfer, std::span<const OpId> readers) {
  const auto slot = static_cast<std::uint32_t>(schedule_.transfers.size());
  if (!problem_.has_link(transfer.from, transfer.to)) return;  // T9: its readers never start
  schedule_.bytes_sent += transfer.bytes;
  schedule_.transfers.push_back(transfer);
  const std::size_t link = index(transfer.from) * problem_.device_count() + index(transfer.to);
  if (!problem_.rules().contention || private_link_[link]) {
    grant(slot, readers);
  } else {
    pending_.push_back({.request_ns = transfer.request_ns,
                        .producer = transfer.producer,
                        .output = transfer.output ? *transfer.output : std::uint64_t{1} << 32,
                        .to = transfer.to,
                        .slot = slot});
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
  }
}

// T2, T3, T6.
void Scheduler::grant(std::uint32_t slot, std::span<const OpId> readers) {
  Transfer& transfer = schedule_.transfers[slot];
  const Link& link = problem_.link(transfer.from, transfer.to);
  const std::int64_t busy_ns = problem_.busy_ns(transfer.bytes, transfer.from, transfer.to);
  transfer.start_ns = transfer.request_ns;
  if (problem_.rules().contention) {
    for (ChannelId channel : link.channels) {
      transfer.start_ns = std::max(transfer.start_ns, channel_free_ns_[channel]);
    }
    for (ChannelId channel : link.channels) {
      channel_free_ns_[channel] = transfer.start_ns + busy_ns;
    }
  }
  transfer.arrival_ns = transfer.start_ns + busy_ns + link.latency_ns;
  for (OpId reader : readers) {
    if (schedule_.device[reader] == transfer.to) input_is_there(reader, transfer.arrival_ns);
  }
}

void Scheduler::grant_least_pending() {
  std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
  const Pending least = pending_.back();
  pending_.pop_back();
  const std::optional<std::uint32_t> output = schedule_.transfers[least.slot].output;
  grant(least.slot, output ? graph_.readers(graph_.outputs(least.producer)[*output])
                           : graph_.control_readers(least.producer));
}

// D3.
void Scheduler::input_is_there(OpId op, std::int64_t ns) {
  ready_ns_[op] = std::max(ready_ns_[op], ns);
  if (--waits_for_[op] > 0) return;
  const DeviceId device = schedule_.device[op];
  if (problem_.rules().dispatch == Dispatch::kFifo) {
    ready_[device].push_back({ready_ns_[op], op});
    std::push_heap(ready_[device].begin(), ready_[device].end(), std::greater<>());
  } else if (head_[device] == op) {
    runnable_.push_back(device);
  }
}

}  // namespace pardnn
