// Row `pardnn`: the published method.
#include "pardnn/partition/pardnn.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pardnn/partition/clusters_to_devices.h"
#include "pardnn/partition/flow.h"
#include "pardnn/partition/groups.h"
#include "pardnn/partition/mapping.h"
#include "pardnn/partition/refine_critical_path.h"
#include "pardnn/partition/refine_ops.h"
#include "pardnn/partition/refine_paths.h"
#include "pardnn/partition/refinement.h"
#include "pardnn/partition/slicing.h"

namespace pardnn {
namespace {

// Op simulations that trying other devices for the clusters may take: a second or so.
constexpr std::size_t kSwapEffort = 4'000'000;

UnitPlacement placed(const Problem& problem, const Times& times, const Flow& flow,
                     const PrimaryOfNode& primary_of) {
  DeviceOfPrimary devices = clusters_to_devices(problem, flow, primary_of);
  if (devices_differ(problem)) {
    const auto trials = kSwapEffort / std::max<std::size_t>(1, problem.graph().ops().size());
    const auto step_ns = [&](const DeviceOfPrimary& candidate) -> std::optional<std::int64_t> {
      const Refinement trial(problem, times, place_groups(problem, flow, primary_of, candidate));
      if (!trial.runs()) return std::nullopt;
      return trial.step_ns();
    };
    devices = swap_devices(std::move(devices),
                           static_cast<int>(std::min<std::size_t>(trials, 1000)), step_ns);
  }
  return place_groups(problem, flow, primary_of, devices);
}

}  // namespace

Proposal pardnn_row(const Problem& problem, const Run& run) {
  return cluster_and_refine(problem, Times(problem), run);
}

Proposal cluster_and_refine(const Problem& problem, const Times& times, const Run& run) {
  const Flow flow(problem, times);
  const Slicing slicing = slice(flow, problem.device_count());
  const auto mapped = [&](Talk talk) {
    return placed(problem, times, flow, map_to_primaries(flow, slicing, talk));
  };
  Refinement refinement(problem, times, mapped(Talk::kOnlyToIt));
  if (communication_dominates(flow, slicing)) {
    UnitPlacement relaxed = mapped(Talk::kMostlyToIt);
    refinement.offer(std::move(relaxed));
  }
  if (!refinement.runs()) return refinement.take();
  if (!run.stopped()) refine_paths(refinement, flow, slicing);
  if (!run.stopped()) refine_ops(refinement);
  if (!run.stopped()) refine_critical_path(refinement);
  return refinement.take();
}

}  // namespace pardnn
