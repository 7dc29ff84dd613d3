#include "pardnn/sim/any_timing.h"

#include <algorithm>

#include "pardnn/base/error.h"

namespace pardnn {

AnyTiming::AnyTiming(const Problem& problem, const Schedule& schedule, const Lifetimes& lifetimes)
    : problem_(problem), graph_(problem.graph()), schedule_(schedule), lifetimes_(lifetimes) {}

void AnyTiming::compute(Table<DeviceId, Peak>& peaks) {
  PARDNN_CHECK(problem_.rules().dispatch == Dispatch::kSequence);
  const std::size_t buffers = lifetimes_.uses().size();
  first_.assign(buffers, 0);
  sent_by_.assign(buffers, 0);
  if (!schedule_.transfers.empty()) {
    for (std::uint32_t first = 0; first < problem_.device_count(); first += kLanes) {
      sweep_forward(first);
      read_forward(first);
      sweep_backward(first);
      read_backward(first);
    }
  }

  changes_.resize(problem_.device_count());
  for (DeviceId device : problem_.devices()) {
    changes_[device].assign(2 * schedule_.sequences[device].size() + 2, 0);
  }
  for (OpId op : schedule_.order) {
    const DeviceId device = schedule_.device[op];
    const std::uint32_t runs_at = at_start(schedule_.position[op]);
    changes_[device][runs_at] += problem_.workspace_bytes(op);
    changes_[device][runs_at + 1] -= problem_.workspace_bytes(op);
    for (TensorId tensor : graph_.outputs(op)) {
      if (graph_.tensor(tensor).alias_of) continue;
      first_[lifetimes_.own(tensor)] = runs_at;
      add(lifetimes_.own(tensor), device);
    }
  }
  for (std::uint32_t slot = 0; slot < schedule_.transfers.size(); ++slot) {
    if (schedule_.transfers[slot].output) add(lifetimes_.copy(slot), schedule_.transfers[slot].to);
  }
  for (DeviceId device : problem_.devices()) {
    std::int64_t used = lifetimes_.resident_bytes(device), most = used;
    for (std::int64_t change : changes_[device]) most = std::max(most, used += change);
    peaks[device].any_timing_bytes = most;
  }
}

// One buffer from its first moment up to its last. The end of what is taken over and the
// beginning of what takes over cancel each other and are left out.
void AnyTiming::add(BufferId buffer, DeviceId device) {
  const BufferUse& use = lifetimes_.uses()[buffer];
  const std::int64_t bytes = lifetimes_.bytes(buffer);
  std::vector<std::int64_t>& changes = changes_[device];
  const bool is_tensor = index(buffer) < graph_.tensors().size();
  const bool is_taker = is_tensor && !use.is_allocated;
  if (is_taker) {
    const TensorId tensor{index(buffer)};
    const OpId op = graph_.tensor(tensor).producer;
    const Input& input = graph_.inputs(op)[*graph_.tensor(tensor).takes_over];
    if (!is_passed_on(*lifetimes_.behind(input, device))) changes[first_[buffer]] += bytes;
  } else {
    changes[first_[buffer]] += bytes;
  }
  if (is_passed_on(buffer)) return;
  std::uint32_t end = std::max(at_gap_before(use.last_position + 1), sent_by_[buffer]);
  if (use.is_fetched) end = static_cast<std::uint32_t>(changes.size() - 1);
  changes[end] -= bytes;
}

// Rule M4b under any timing: the arrivals must be certain, and they are when an op has started
// that depends on a reader at each destination. That implies what the simulation asks for.
bool AnyTiming::is_passed_on(BufferId buffer) const {
  const BufferUse& use = lifetimes_.uses()[buffer];
  if (!use.taken_by) return false;
  const OpId op = graph_.tensor(*use.taken_by).producer;
  return sent_by_[buffer] <= at_start(schedule_.position[op]);
}

template <class Visit>
void AnyTiming::for_each_predecessor(OpId op, Visit visit) const {
  for (const Input& input : graph_.inputs(op)) {
    if (input.is_variable()) continue;
    const OpId producer = graph_.tensor(input.tensor()).producer;
    if (!graph_.is_every(producer)) visit(producer);
  }
  for (OpId before : graph_.controls(op)) visit(before);
  const std::uint32_t position = schedule_.position[op];
  if (position > 0) visit(schedule_.sequences[schedule_.device[op]][position - 1]);
}

// reach_[op][lane]: 1 + the position of the last op of that device that `op` depends on, 0: none.
void AnyTiming::sweep_forward(std::uint32_t first_device) {
  reach_.assign(graph_.ops().size(), Lanes{});
  for (OpId op : schedule_.order) {
    Lanes& reach = reach_[op];
    for_each_predecessor(op, [&](OpId before) {
      const Lanes& other = reach_[before];
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        reach[lane] = std::max(reach[lane], other[lane]);
      }
      const std::uint32_t lane = index(schedule_.device[before]) - first_device;
      if (lane < kLanes) reach[lane] = std::max(reach[lane], schedule_.position[before] + 1);
    });
  }
}

// A copy can exist once the last op of its device that its producer depends on has finished.
void AnyTiming::read_forward(std::uint32_t first_device) {
  for (std::uint32_t slot = 0; slot < schedule_.transfers.size(); ++slot) {
    const Transfer& transfer = schedule_.transfers[slot];
    const std::uint32_t lane = index(transfer.to) - first_device;
    if (lane < kLanes && transfer.output) {
      first_[lifetimes_.copy(slot)] = at_gap_before(reach_[transfer.producer][lane]);
    }
  }
}

// reach_[op][lane]: the position of the first op of that device that depends on `op`, at most the
// length of its sequence.
void AnyTiming::sweep_backward(std::uint32_t first_device) {
  Lanes none{};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (first_device + lane >= problem_.device_count()) break;
    none[lane] =
        static_cast<std::uint32_t>(schedule_.sequences[DeviceId{first_device + lane}].size());
  }
  reach_.assign(graph_.ops().size(), none);
  for (auto it = schedule_.order.rbegin(); it != schedule_.order.rend(); ++it) {
    Lanes reach = reach_[*it];
    const std::uint32_t own_lane = index(schedule_.device[*it]) - first_device;
    if (own_lane < kLanes) reach[own_lane] = schedule_.position[*it];
    for_each_predecessor(*it, [&](OpId before) {
      Lanes& other = reach_[before];
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        other[lane] = std::min(other[lane], reach[lane]);
      }
    });
  }
}

// A transfer has certainly arrived once an op of the sender starts that depends on one of the
// tensor's readers at the destination; if there is none, only at the end.
void AnyTiming::read_backward(std::uint32_t first_device) {
  for (OpId op : schedule_.order) {
    const std::uint32_t lane = index(schedule_.device[op]) - first_device;
    if (lane >= kLanes) continue;
    for (TensorId tensor : graph_.outputs(op)) {
      const auto buffer = lifetimes_.behind(tensor);
      if (!buffer || schedule_.transfer_count[tensor] == 0) continue;
      for (std::uint32_t n = 0; n < schedule_.transfer_count[tensor]; ++n) {
        const DeviceId to = schedule_.transfers[schedule_.first_transfer[tensor] + n].to;
        std::uint32_t arrived_by =
            static_cast<std::uint32_t>(schedule_.sequences[schedule_.device[op]].size());
        for (OpId reader : graph_.readers(tensor)) {
          if (schedule_.device[reader] == to) {
            arrived_by = std::min(arrived_by, reach_[reader][lane]);
          }
        }
        sent_by_[*buffer] = std::max(sent_by_[*buffer], at_start(arrived_by));
      }
    }
  }
}

}  // namespace pardnn
