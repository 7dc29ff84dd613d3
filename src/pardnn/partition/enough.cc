// How much memory would be enough, when a plan does not fit.
#include "pardnn/partition/enough.h"

#include <algorithm>
#include <utility>

#include "pardnn/base/quantity.h"
#include "pardnn/plan/memory_bound.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

// The least capacities under which the plan fits.
Table<DeviceId, std::int64_t> needed_capacities(const Problem& problem, const Plan& plan) {
  Table<DeviceId, std::int64_t> needed(problem.device_count(), 0);
  const std::int64_t used_per_mille = 1000 - problem.rules().margin_per_mille;
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = plan.prediction.peaks[device];
    const Wide bytes = problem.rules().any_timing ? peak.any_timing_bytes : peak.bytes;
    // limit = capacity - floor(capacity * margin / 1000) >= bytes.
    needed[device] = static_cast<std::int64_t>(
        std::min<Wide>(kMaxQuantity, (bytes * 1000 + used_per_mille - 1) / used_per_mille));
  }
  return needed;
}

// By how much all capacities must grow to hold these, per mille, rounded up.
std::int64_t growth_per_mille(const Problem& problem, const Table<DeviceId, std::int64_t>& needed) {
  std::int64_t growth = 1000;
  for (const DeviceId device : problem.devices()) {
    const Wide capacity = std::max<std::int64_t>(1, problem.capacity_bytes(device));
    const Wide per_mille = (Wide{needed[device]} * 1000 + capacity - 1) / capacity;
    growth = std::max(growth, static_cast<std::int64_t>(std::min<Wide>(per_mille, kMaxQuantity)));
  }
  return growth;
}

Table<DeviceId, std::int64_t> grown_capacities(const Problem& problem, std::int64_t per_mille) {
  Table<DeviceId, std::int64_t> grown(problem.device_count(), 0);
  for (const DeviceId device : problem.devices()) {
    const Wide bytes = (Wide{problem.capacity_bytes(device)} * per_mille + 999) / 1000;
    grown[device] = static_cast<std::int64_t>(std::min<Wide>(bytes, kMaxQuantity));
  }
  return grown;
}

// A size that can be typed as it stands and is not below `bytes`.
std::string rounded_up_text(std::int64_t bytes) {
  constexpr std::int64_t kKiB = 1024, kMiB = kKiB * kKiB;
  const auto in = [&](std::int64_t unit, const char* name) {
    return std::to_string(bytes / unit + (bytes % unit != 0)) + name;
  };
  if (bytes >= 64 * kMiB) return in(kMiB, "MiB");
  if (bytes >= 64 * kKiB) return in(kKiB, "KiB");
  return std::to_string(bytes);
}

}  // namespace

Enough find_enough(const Problem& problem, const Plan& plan, std::string_view algorithm,
                   const Run& run) {
  Enough enough{.impossible = proven_impossible(problem),
                .capacity_bytes = needed_capacities(problem, plan)};
  if (problem.graph().ops().size() > kEnoughOps) return enough;
  std::int64_t too_little = 1000, fits = growth_per_mille(problem, enough.capacity_bytes);
  for (int trial = 0; trial < kEnoughTrials && fits - too_little > 10 && !run.stopped(); ++trial) {
    const std::int64_t middle = too_little + (fits - too_little) / 2;
    Machine machine = problem.machine();
    const Table<DeviceId, std::int64_t> capacities = grown_capacities(problem, middle);
    for (const DeviceId device : problem.devices()) {
      machine.devices[device].capacity_bytes = capacities[device];
    }
    const Problem larger(problem.shared_graph(), std::move(machine), problem.rules());
    const Plan again = make_plan(larger, algorithm, run);
    if (again.score.fits()) {
      fits = middle;
      enough.capacity_bytes = needed_capacities(larger, again);
    } else {
      too_little = middle;
    }
  }
  return enough;
}

std::string enough_text(const Problem& problem, const Plan& plan, std::string_view algorithm,
                        const Run& run) {
  if (plan.score.fits()) return "";
  const Enough enough = find_enough(problem, plan, algorithm, run);
  std::string text;
  bool is_bound_said = false;
  for (const Impossible& reason : enough.impossible) {
    text += "impossible: " + sentence(problem, reason) + "\n";
    is_bound_said |= reason.why == Impossible::Why::kMoment;
  }
  if (!is_bound_said) {
    text += "any plan needs at least " + format_bytes(memory_bound(problem).bytes) +
            " on all devices together (proven)\n";
  }
  bool alike = true;
  std::int64_t most = 0;
  const DeviceId first{};
  for (const DeviceId device : problem.devices()) {
    alike &= problem.capacity_bytes(device) == problem.capacity_bytes(first);
    most = std::max(most, enough.capacity_bytes[device]);
  }
  text += "it would fit with ";
  if (alike) return text + rounded_up_text(most) + " per device (tried)\n";
  for (const DeviceId device : problem.devices()) {
    text += (device == first ? "" : ", ") + rounded_up_text(enough.capacity_bytes[device]) +
            " on " + problem.machine().devices[device].name;
  }
  return text + " (tried)\n";
}

}  // namespace pardnn
