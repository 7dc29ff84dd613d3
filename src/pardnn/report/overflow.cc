#include "pardnn/report/overflow.h"

#include <algorithm>
#include <string_view>

#include "pardnn/base/error.h"
#include "pardnn/base/quantity.h"
#include "pardnn/sim/memory_profile.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {
namespace {

constexpr std::size_t kShownHolders = 10;

std::string_view shown_name(const Graph& graph, OpId op) {
  const auto& name = graph.notes(op).name;
  return name ? std::string_view(*name) : graph.key(op);
}

std::string describe(const Graph& graph, const Buffer& buffer) {
  const auto tensor = [&]() -> std::string {
    const Tensor& row = graph.tensor(*buffer.tensor);
    return "output " + std::to_string(row.number) + " of " +
           std::string(shown_name(graph, row.producer));
  };
  switch (buffer.what) {
    case Buffer::What::kOutput:
      return tensor();
    case Buffer::What::kCopy:
      return "copy of " + tensor();
    case Buffer::What::kEvery:
      return "constant " + tensor();
    case Buffer::What::kVariable: {
      const auto& name = graph.notes(*buffer.variable).name;
      return "variable " + (name ? *name : std::string(graph.key(*buffer.variable)));
    }
    case Buffer::What::kWorkspace:
      return "workspace of " + std::string(shown_name(graph, *buffer.op));
    case Buffer::What::kReserve:
      return "reserve of the machine";
  }
  PARDNN_CHECK(false);
}

}  // namespace

std::string overflow_text(const Problem& problem, const Plan& plan) {
  std::int64_t most = 0;
  DeviceId worst{0};
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = plan.prediction.peaks[device];
    const std::int64_t bytes = problem.rules().any_timing ? peak.any_timing_bytes : peak.bytes;
    if (bytes - problem.limit_bytes(device) > most) {
      most = bytes - problem.limit_bytes(device);
      worst = device;
    }
  }
  if (most == 0) return "";
  const Peak& peak = plan.prediction.peaks[worst];
  std::string text = "device " + problem.machine().devices[worst].name + " overflows by " +
                     format_bytes(most) + ": ";
  if (problem.rules().any_timing) {
    text += format_bytes(peak.any_timing_bytes) + " with the worst timing, by prediction ";
  }
  text += format_bytes(peak.bytes) + " at " + format_ns(peak.at_ns) + " of " +
          format_ns(plan.prediction.step_ns) + ", and its limit is " +
          format_bytes(problem.limit_bytes(worst)) + "\n";
  Simulator simulator(problem);
  Sequences sequences = plan.sequences;
  PARDNN_CHECK(simulator.schedule(plan.placement, sequences) != nullptr);
  const auto alive = holders(simulator.lifetimes(), worst, peak.at_ns);
  text += "the largest of " + std::to_string(alive.size()) + " buffers it holds then:\n";
  for (std::size_t i = 0; i < std::min(alive.size(), kShownHolders); ++i) {
    std::string size = format_bytes(alive[i].bytes);
    text += "  " + std::string(size.size() < 10 ? 10 - size.size() : 0, ' ') + size + "  " +
            describe(problem.graph(), alive[i]) + "\n";
  }
  return text;
}

}  // namespace pardnn
