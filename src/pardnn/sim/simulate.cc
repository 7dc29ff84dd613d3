#include "pardnn/sim/simulate.h"

#include <algorithm>
#include <tuple>

#include "pardnn/base/error.h"
#include "pardnn/problem/plenty.h"
#include "pardnn/sim/any_timing.h"
#include "pardnn/sim/lifetimes.h"
#include "pardnn/sim/peaks.h"
#include "pardnn/sim/schedule.h"

namespace pardnn {

struct Simulator::State {
  explicit State(const Problem& p)
      : problem(p),
        scheduler(p),
        lifetimes(p, scheduler.schedule()),
        peak_sweep(p, scheduler.schedule(), lifetimes),
        any_timing(p, scheduler.schedule(), lifetimes),
        memory_is_plenty(pardnn::memory_is_plenty(p)) {}

  const Schedule& schedule() const { return scheduler.schedule(); }

  bool run(const Placement& placement, Sequences& sequences) {
    has_run = scheduler.run(placement, sequences);
    has_lifetimes = has_peaks = false;
    if (has_run) variables = placement.variables;
    return has_run;
  }

  void compute_lifetimes() {
    PARDNN_CHECK(has_run);
    if (!has_lifetimes) lifetimes.compute(variables);
    has_lifetimes = true;
  }

  void list_buffers();
  void list_tensor_buffers();
  void list_resident_buffers();
  void add_buffer(Buffer buffer, const BufferUse& use);

  const Problem& problem;
  Scheduler scheduler;
  Lifetimes lifetimes;
  PeakSweep peak_sweep;
  AnyTiming any_timing;
  Table<VariableId, DeviceId> variables;
  const bool memory_is_plenty;
  bool has_run = false, has_lifetimes = false;
  bool has_peaks = false, has_any_timing = false;
  Timeline timeline;
  std::vector<Buffer> buffers;
  Table<DeviceId, Peak> peaks;
};

Simulator::Simulator(const Problem& problem) : state_(std::make_unique<State>(problem)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

const Timeline* Simulator::schedule(const Placement& placement, Sequences& sequences) {
  return state_->run(placement, sequences) ? &timeline() : nullptr;
}

const Timeline& Simulator::timeline() {
  PARDNN_CHECK(state_->has_run);
  const Schedule& schedule = state_->schedule();
  Timeline& timeline = state_->timeline;
  timeline.start_ns = schedule.start_ns;
  timeline.finish_ns = schedule.finish_ns;
  timeline.transfers = schedule.transfers;
  timeline.step_ns = schedule.step_ns;
  timeline.bytes_sent = schedule.bytes_sent;
  const auto key = [](const Transfer& transfer) {
    return std::tuple(transfer.start_ns, transfer.producer, !transfer.output.has_value(),
                      transfer.output.value_or(0), transfer.to);
  };
  std::sort(timeline.transfers.begin(), timeline.transfers.end(),
            [&](const Transfer& a, const Transfer& b) { return key(a) < key(b); });
  return timeline;
}

void Simulator::State::add_buffer(Buffer buffer, const BufferUse& use) {
  const BufferUse* last = &use;
  while (last->taken_by) last = &lifetimes.uses()[lifetimes.own(*last->taken_by)];
  buffer.end_ns = lifetimes.end_ns(*last, buffer.device);
  buffers.push_back(buffer);
}

void Simulator::State::list_tensor_buffers() {
  const Graph& graph = problem.graph();
  for (OpId op : schedule().order) {
    const DeviceId device = schedule().device[op];
    const std::int64_t start_ns = schedule().start_ns[op];
    for (TensorId tensor : graph.outputs(op)) {
      const BufferUse& use = lifetimes.uses()[lifetimes.own(tensor)];
      if (!use.is_allocated) continue;
      add_buffer({.what = Buffer::What::kOutput,
                  .device = device,
                  .tensor = tensor,
                  .bytes = problem.buffer_bytes(tensor),
                  .begin_ns = start_ns},
                 use);
    }
    if (problem.workspace_bytes(op) == 0) continue;
    buffers.push_back({.what = Buffer::What::kWorkspace,
                       .device = device,
                       .op = op,
                       .bytes = problem.workspace_bytes(op),
                       .begin_ns = start_ns,
                       .end_ns = schedule().finish_ns[op]});
  }
  for (std::uint32_t slot = 0; slot < schedule().transfers.size(); ++slot) {
    const BufferId buffer = lifetimes.copy(slot);
    const Transfer& transfer = schedule().transfers[slot];
    if (!transfer.output) continue;
    add_buffer({.what = Buffer::What::kCopy,
                .device = transfer.to,
                .tensor = graph.outputs(transfer.producer)[*transfer.output],
                .bytes = lifetimes.bytes(buffer),
                .begin_ns = transfer.start_ns},
               lifetimes.uses()[buffer]);
  }
}

void Simulator::State::list_resident_buffers() {
  const std::int64_t end_ns = schedule().step_ns;
  for (const EveryBuffer& every : lifetimes.every_buffers()) {
    every.held_at.for_each([&](DeviceId device) {
      buffers.push_back({.what = Buffer::What::kEvery,
                         .device = device,
                         .tensor = every.tensor,
                         .bytes = problem.buffer_bytes(every.tensor),
                         .end_ns = end_ns});
    });
  }
  for (VariableId variable : problem.graph().variables()) {
    buffers.push_back({.what = Buffer::What::kVariable,
                       .device = variables[variable],
                       .variable = variable,
                       .bytes = problem.buffer_bytes(variable),
                       .end_ns = end_ns});
  }
  for (DeviceId device : problem.devices()) {
    if (problem.reserve_bytes(device) == 0) continue;
    buffers.push_back({.what = Buffer::What::kReserve,
                       .device = device,
                       .bytes = problem.reserve_bytes(device),
                       .end_ns = end_ns});
  }
}

void Simulator::State::list_buffers() {
  compute_lifetimes();
  buffers.clear();
  list_tensor_buffers();
  list_resident_buffers();
  const auto key = [](const Buffer& buffer) {
    return std::tuple(buffer.device, buffer.begin_ns, buffer.what, buffer.tensor, buffer.variable,
                      buffer.op);
  };
  std::sort(buffers.begin(), buffers.end(),
            [&](const Buffer& a, const Buffer& b) { return key(a) < key(b); });
}

const std::vector<Buffer>& Simulator::lifetimes() {
  state_->list_buffers();
  return state_->buffers;
}

Table<DeviceId, Peak> Simulator::peaks(bool any_timing) {
  if (state_->has_peaks && state_->has_any_timing == any_timing) return state_->peaks;
  state_->compute_lifetimes();
  state_->peak_sweep.compute(state_->peaks);
  if (any_timing) state_->any_timing.compute(state_->peaks);
  state_->has_peaks = true;
  state_->has_any_timing = any_timing;
  return state_->peaks;
}

std::optional<Score> Simulator::score(const Placement& placement, Sequences& sequences) {
  if (!state_->run(placement, sequences)) return std::nullopt;
  const Schedule& schedule = state_->schedule();
  Prediction prediction;
  prediction.step_ns = schedule.step_ns;
  prediction.bytes_sent = schedule.bytes_sent;
  prediction.peaks = state_->memory_is_plenty
                         ? Table<DeviceId, Peak>(state_->problem.device_count())
                         : peaks(state_->problem.rules().any_timing);
  return score_of(state_->problem, prediction);
}

std::optional<Prediction> predict(const Problem& problem, const Placement& placement,
                                  Sequences& sequences) {
  Simulator simulator(problem);
  const Timeline* timeline = simulator.schedule(placement, sequences);
  if (timeline == nullptr) return std::nullopt;
  return Prediction{.start_ns = timeline->start_ns,
                    .transfers = timeline->transfers,
                    .peaks = simulator.peaks(problem.rules().dispatch == Dispatch::kSequence),
                    .step_ns = timeline->step_ns,
                    .bytes_sent = timeline->bytes_sent};
}

}  // namespace pardnn
