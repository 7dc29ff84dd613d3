#include "pardnn/sim/peaks.h"

#include <algorithm>

namespace pardnn {

PeakSweep::PeakSweep(const Problem& problem, const Schedule& schedule, const Lifetimes& lifetimes)
    : problem_(problem), schedule_(schedule), lifetimes_(lifetimes) {}

void PeakSweep::compute(Table<DeviceId, Peak>& peaks) {
  collect();
  peaks.resize(problem_.device_count());
  for (DeviceId device : problem_.devices()) peaks[device] = sweep(device);
}

void PeakSweep::collect() {
  const Graph& graph = problem_.graph();
  taken_at_start_.assign(graph.ops().size(), 0);
  freed_at_finish_.assign(graph.ops().size(), 0);
  copies_.resize(problem_.device_count());
  freed_later_.resize(problem_.device_count());
  for (auto& changes : copies_) changes.clear();
  for (auto& changes : freed_later_) changes.clear();

  for (OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    const std::int64_t workspace_bytes = problem_.workspace_bytes(op);
    taken_at_start_[op] += workspace_bytes;
    freed_at_finish_[op] += workspace_bytes;
    for (TensorId tensor : graph.outputs(op)) {
      const BufferId buffer = lifetimes_.own(tensor);
      if (graph.tensor(tensor).alias_of) continue;
      if (lifetimes_.uses()[buffer].is_allocated) {
        taken_at_start_[op] += problem_.buffer_bytes(tensor);
      }
      add_end(buffer, schedule_.device[op]);
    }
  }
  for (std::uint32_t slot = 0; slot < schedule_.transfers.size(); ++slot) {
    const BufferId buffer = lifetimes_.copy(slot);
    if (!lifetimes_.uses()[buffer].is_allocated) continue;  // the signal of a control edge
    const Transfer& transfer = schedule_.transfers[slot];
    copies_[transfer.to].push_back({transfer.start_ns, lifetimes_.bytes(buffer)});
    add_end(buffer, transfer.to);
  }
  for (auto& changes : copies_) std::sort(changes.begin(), changes.end());
  for (auto& changes : freed_later_) std::sort(changes.begin(), changes.end());
}

// A buffer that is taken over lives on for the output that took it.
void PeakSweep::add_end(BufferId buffer, DeviceId device) {
  const BufferUse& use = lifetimes_.uses()[buffer];
  if (use.taken_by || use.is_fetched) return;
  const OpId last = schedule_.sequences[device][use.last_position];
  const std::int64_t bytes = lifetimes_.bytes(buffer);
  if (use.last_arrival_ns > schedule_.finish_ns[last]) {
    freed_later_[device].push_back({use.last_arrival_ns, bytes});
  } else {
    freed_at_finish_[last] += bytes;
  }
}

Peak PeakSweep::sweep(DeviceId device) const {
  const std::vector<OpId>& sequence = schedule_.sequences[device];
  const std::vector<Change>& copies = copies_[device];
  const std::vector<Change>& freed_later = freed_later_[device];
  std::size_t next_op = 0, finished = 0, next_copy = 0, next_freed = 0;
  std::int64_t used = lifetimes_.resident_bytes(device);
  Peak peak{.bytes = used};
  while (next_op < sequence.size() || next_copy < copies.size()) {
    const bool is_op = next_copy == copies.size() ||
                       (next_op < sequence.size() &&
                        schedule_.start_ns[sequence[next_op]] <= copies[next_copy].at_ns);
    const std::int64_t at_ns =
        is_op ? schedule_.start_ns[sequence[next_op]] : copies[next_copy].at_ns;
    for (; finished < next_op && schedule_.finish_ns[sequence[finished]] <= at_ns; ++finished) {
      used -= freed_at_finish_[sequence[finished]];
    }
    for (; next_freed < freed_later.size() && freed_later[next_freed].at_ns <= at_ns;
         ++next_freed) {
      used -= freed_later[next_freed].bytes;
    }
    used += is_op ? taken_at_start_[sequence[next_op++]] : copies[next_copy++].bytes;
    if (used > peak.bytes) peak.bytes = used, peak.at_ns = at_ns;
  }
  return peak;
}

}  // namespace pardnn
