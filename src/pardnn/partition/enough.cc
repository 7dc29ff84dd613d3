// How much memory would be enough, when a plan does not fit.
#include "pardnn/partition/enough.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pardnn/base/quantity.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

// What the op needs at the moment it starts, on any device: each buffer behind its inputs once,
// its outputs but those that may take one over, its workspace. What lies in the unit's own
// variables is counted with them.
std::int64_t working_bytes(const Problem& problem, OpId op) {
  const Graph& graph = problem.graph();
  std::int64_t bytes = problem.workspace_bytes(op);
  std::set<TensorId> buffers;
  for (const Input& input : graph.inputs(op)) {
    if (input.is_variable()) continue;
    const Origin origin = graph.origin(input.tensor());
    // An alias sent here has its own size, so a smaller alias proves no more than that.
    if (origin.tensor.has_value() && buffers.insert(*origin.tensor).second) {
      bytes = saturating_add(bytes, std::min(problem.buffer_bytes(*origin.tensor),
                                             problem.buffer_bytes(input.tensor())));
    }
  }
  for (const TensorId tensor : graph.outputs(op)) {
    const Tensor& output = graph.tensor(tensor);
    if (output.alias_of.has_value() || output.takes_over.has_value()) continue;
    bytes = saturating_add(bytes, problem.buffer_bytes(tensor));
  }
  return bytes;
}

std::int64_t least_bytes(const Problem& problem, UnitId unit) {
  std::int64_t variables = 0, working = 0;
  for (const VariableId variable : problem.variables(unit)) {
    variables = saturating_add(variables, problem.buffer_bytes(variable));
  }
  for (const OpId op : problem.ops(unit)) working = std::max(working, working_bytes(problem, op));
  return saturating_add(variables, working);
}

std::optional<TooLarge> find_too_large(const Problem& problem) {
  std::optional<TooLarge> worst;
  std::int64_t worst_missing = 0;
  for (const UnitId unit : problem.units()) {
    const std::int64_t bytes = least_bytes(problem, unit);
    std::optional<std::int64_t> missing;
    for (const DeviceId device : problem.devices()) {
      if (!problem.is_allowed(unit, device)) continue;
      const std::int64_t here =
          saturating_add(bytes, problem.reserve_bytes(device)) - problem.limit_bytes(device);
      missing = std::min(missing.value_or(here), here);
    }
    if (*missing <= worst_missing) continue;
    worst_missing = *missing;
    worst = TooLarge{unit, bytes};
  }
  return worst;
}

std::optional<std::int64_t> find_excess_of_variables(const Problem& problem) {
  std::int64_t bytes = 0, room = 0;
  for (const VariableId variable : problem.graph().variables()) {
    bytes = saturating_add(bytes, problem.buffer_bytes(variable));
  }
  for (const DeviceId device : problem.devices()) {
    room = saturating_add(room, std::max<std::int64_t>(0, problem.limit_bytes(device) -
                                                              problem.reserve_bytes(device)));
  }
  return bytes > room ? std::optional(bytes) : std::nullopt;
}

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

std::string unit_text(const Problem& problem, UnitId unit) {
  const Graph& graph = problem.graph();
  const auto named = [](const Notes& notes, std::string_view key) {
    return notes.name.value_or(std::string(key));
  };
  if (!problem.ops(unit).empty()) {
    const OpId op = problem.ops(unit).front();
    if (const auto group = graph.group(op)) return "group " + std::string(graph.name(*group));
    return "op " + named(graph.notes(op), graph.key(op));
  }
  const VariableId variable = problem.variables(unit).front();
  return "variable " + named(graph.notes(variable), graph.key(variable));
}

}  // namespace

Enough find_enough(const Problem& problem, const Plan& plan, std::string_view algorithm,
                   const Run& run) {
  Enough enough{.too_large = find_too_large(problem),
                .variables_bytes = find_excess_of_variables(problem),
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
  if (enough.too_large.has_value()) {
    text += unit_text(problem, enough.too_large->unit) + " alone needs " +
            format_bytes(enough.too_large->bytes) + ", more than any device it may be on has\n";
  }
  if (enough.variables_bytes.has_value()) {
    text += "the variables alone need " + format_bytes(*enough.variables_bytes) +
            ", more than all devices have together\n";
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
