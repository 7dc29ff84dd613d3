#include "pardnn/report/overflow.h"

#include <algorithm>

#include "pardnn/base/error.h"
#include "pardnn/base/quantity.h"
#include "pardnn/sim/memory_profile.h"

namespace pardnn {
namespace {

std::string describe(const Graph& graph, const Buffer& buffer) {
  const std::string name = holder_name(graph, buffer);
  const auto tensor = [&] {
    return "output " + std::to_string(graph.tensor(*buffer.tensor).number) + " of " + name;
  };
  switch (buffer.what) {
    case Buffer::What::kOutput:
      return tensor();
    case Buffer::What::kCopy:
      return "copy of " + tensor();
    case Buffer::What::kEvery:
      return "constant " + tensor();
    case Buffer::What::kVariable:
      return "variable " + name;
    case Buffer::What::kWorkspace:
      return "workspace of " + name;
    case Buffer::What::kReserve:
      return "reserve of the machine";
  }
  PARDNN_CHECK(false);
}

}  // namespace

std::string_view kind_name(Buffer::What what) {
  switch (what) {
    case Buffer::What::kOutput:
      return "output";
    case Buffer::What::kCopy:
      return "copy";
    case Buffer::What::kEvery:
      return "every";
    case Buffer::What::kVariable:
      return "variable";
    case Buffer::What::kWorkspace:
      return "workspace";
    case Buffer::What::kReserve:
      return "reserve";
  }
  PARDNN_CHECK(false);
}

std::string holder_name(const Graph& graph, const Buffer& buffer) {
  if (buffer.variable) {
    return graph.notes(*buffer.variable).name.value_or(std::string(graph.key(*buffer.variable)));
  }
  if (!buffer.tensor && !buffer.op) return "";
  const OpId op = buffer.tensor ? graph.tensor(*buffer.tensor).producer : *buffer.op;
  return graph.notes(op).name.value_or(std::string(graph.key(op)));
}

std::optional<Overflow> find_overflow(const Problem& problem, const Plan& plan) {
  std::optional<Overflow> worst;
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = plan.prediction.peaks[device];
    const std::int64_t bytes = problem.rules().any_timing ? peak.any_timing_bytes : peak.bytes;
    const std::int64_t missing = bytes - problem.limit_bytes(device);
    if (missing <= (worst ? worst->missing_bytes : 0)) continue;
    worst = Overflow{.device = device,
                     .missing_bytes = missing,
                     .bytes = bytes,
                     .at_ns = peak.at_ns,
                     .buffers = 0,
                     .holders = {}};
  }
  if (!worst) return std::nullopt;
  Simulator simulator(problem);
  Sequences sequences = plan.sequences;
  PARDNN_CHECK(simulator.schedule(plan.placement, sequences) != nullptr);
  worst->holders = holders(simulator.lifetimes(), worst->device, worst->at_ns);
  worst->buffers = worst->holders.size();
  worst->holders.resize(std::min(worst->buffers, kShownHolders));
  return worst;
}

std::string overflow_text(const Problem& problem, const Plan& plan, const Overflow& overflow) {
  const Peak& peak = plan.prediction.peaks[overflow.device];
  std::string text = "device " + problem.machine().devices[overflow.device].name +
                     " overflows by " + format_bytes(overflow.missing_bytes) + ": ";
  if (problem.rules().any_timing) {
    text += format_bytes(overflow.bytes) + " with the worst timing, by prediction ";
  }
  text += format_bytes(peak.bytes) + " at " + format_ns(overflow.at_ns) + " of " +
          format_ns(plan.prediction.step_ns) + ", and its limit is " +
          format_bytes(problem.limit_bytes(overflow.device)) + "\n";
  text += "the largest of " + std::to_string(overflow.buffers) + " buffers it holds then:\n";
  for (const Buffer& buffer : overflow.holders) {
    const std::string size = format_bytes(buffer.bytes);
    text += "  " + std::string(size.size() < 10 ? 10 - size.size() : 0, ' ') + size + "  " +
            describe(problem.graph(), buffer) + "\n";
  }
  return text;
}

std::string overflow_text(const Problem& problem, const Plan& plan) {
  const auto overflow = find_overflow(problem, plan);
  return overflow ? overflow_text(problem, plan, *overflow) : "";
}

}  // namespace pardnn
