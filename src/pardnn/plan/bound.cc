#include "pardnn/plan/bound.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

std::int64_t least_duration_ns(const Problem& problem, OpId op) {
  std::optional<std::int64_t> least;
  const DeviceSet& allowed = problem.allowed(*problem.unit(op));
  for (DeviceId device : problem.devices()) {
    if (!allowed[index(device)]) continue;
    const std::int64_t ns = problem.duration_ns(op, device);
    least = std::min(least.value_or(ns), ns);
  }
  return *least;
}

std::int64_t longest_path_ns(const Problem& problem) {
  const Graph& graph = problem.graph();
  Table<OpId, std::int64_t> finish_ns(graph.ops().size());
  std::int64_t longest = 0;
  for (OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    std::int64_t start_ns = 0;
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      start_ns = std::max(start_ns, finish_ns[graph.tensor(input.tensor()).producer]);
    }
    for (OpId before : graph.controls(op)) start_ns = std::max(start_ns, finish_ns[before]);
    finish_ns[op] = start_ns + least_duration_ns(problem, op);
    longest = std::max(longest, finish_ns[op]);
  }
  return longest;
}

// All ops of a unit run on one device, one after another. Beside it, per device, the ops that can
// run nowhere else.
std::int64_t unit_and_device_ns(const Problem& problem) {
  std::int64_t most = 0;
  Table<DeviceId, std::int64_t> only_here(problem.device_count());
  for (UnitId unit : problem.units()) {
    std::optional<std::int64_t> least;
    std::optional<DeviceId> device_allowed;
    for (DeviceId device : problem.devices()) {
      if (!problem.is_allowed(unit, device)) continue;
      std::int64_t sum = 0;
      for (OpId op : problem.ops(unit)) sum += problem.duration_ns(op, device);
      least = std::min(least.value_or(sum), sum);
      device_allowed = device;
    }
    most = std::max(most, *least);
    if (problem.allowed(unit).count() == 1) only_here[*device_allowed] += *least;
  }
  for (std::int64_t sum : only_here) most = std::max(most, sum);
  return most;
}

// The bound by shared work. Devices of one kind get one weight, an integer; the sum over all
// devices stands for 1.
class SharedWork {
 public:
  explicit SharedWork(const Problem& problem) : problem_(problem) {
    std::map<std::string, std::size_t> kind_of;
    for (DeviceId device : problem.devices()) {
      const auto [kind, is_new] =
          kind_of.emplace(problem.machine().devices[device].kind, first_of_kind_.size());
      if (is_new) {
        first_of_kind_.push_back(device);
        devices_of_kind_.emplace_back();
        count_.push_back(0);
      }
      devices_of_kind_[kind->second].set(index(device));
      ++count_[kind->second];
    }
  }

  std::int64_t bound_ns() const {
    const std::size_t kinds = first_of_kind_.size();
    std::int64_t most = bound_ns(std::vector<std::int64_t>(kinds, 1));
    if (kinds == 1) return most;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      std::vector<std::int64_t> alone(kinds, 0);
      alone[kind] = 1;
      most = std::max(most, bound_ns(alone));
    }
    return std::max(most, climb(relative_speeds()));
  }

 private:
  static constexpr std::int64_t kFull = std::int64_t{1} << 20;

  std::int64_t bound_ns(std::span<const std::int64_t> weights) const {
    Wide whole = 0, sum = 0;
    for (std::size_t kind = 0; kind < weights.size(); ++kind) whole += weights[kind] * count_[kind];
    for (OpId op : problem_.graph().ops()) {
      if (problem_.graph().is_every(op)) continue;
      const DeviceSet& allowed = problem_.allowed(*problem_.unit(op));
      std::optional<Wide> least;
      for (std::size_t kind = 0; kind < weights.size(); ++kind) {
        if ((allowed & devices_of_kind_[kind]).none()) continue;
        const Wide weighted = Wide{problem_.duration_ns(op, first_of_kind_[kind])} * weights[kind];
        least = std::min(least.value_or(weighted), weighted);
      }
      sum += *least;
    }
    return static_cast<std::int64_t>((sum + whole - 1) / whole);
  }

  // Of each kind, from the ops that may run on all of them; the fastest is kFull.
  std::vector<std::int64_t> relative_speeds() const {
    std::vector<Wide> sums(first_of_kind_.size(), 0);
    for (OpId op : problem_.graph().ops()) {
      if (problem_.graph().is_every(op)) continue;
      const DeviceSet& allowed = problem_.allowed(*problem_.unit(op));
      const auto on_all = std::ranges::all_of(
          devices_of_kind_, [&](const DeviceSet& devices) { return (allowed & devices).any(); });
      if (!on_all) continue;
      for (std::size_t kind = 0; kind < sums.size(); ++kind) {
        sums[kind] += problem_.duration_ns(op, first_of_kind_[kind]);
      }
    }
    const Wide fastest = std::ranges::min(sums);
    std::vector<std::int64_t> speeds;
    for (Wide sum : sums) {
      const Wide speed = sum == 0 ? Wide{kFull} : fastest * kFull / sum;
      speeds.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(speed)));
    }
    return speeds;
  }

  // Ops are not equally fast on all kinds; a few steps of one weight at a time, halved each round.
  std::int64_t climb(std::vector<std::int64_t> weights) const {
    std::int64_t best = bound_ns(weights);
    for (std::int64_t part = 4; part <= 32; part *= 2) {
      for (std::int64_t& weight : weights) {
        const std::int64_t before = weight;
        for (std::int64_t tried : {before + before / part, before - before / part}) {
          const std::int64_t saved = weight;
          weight = tried;
          const std::int64_t bound = bound_ns(weights);
          if (bound > best) {
            best = bound;
          } else {
            weight = saved;
          }
        }
      }
    }
    return best;
  }

  const Problem& problem_;
  std::vector<DeviceId> first_of_kind_;
  std::vector<DeviceSet> devices_of_kind_;
  std::vector<std::int64_t> count_;
};

}  // namespace

std::int64_t lower_bound_ns(const Problem& problem) {
  return std::max(
      {longest_path_ns(problem), unit_and_device_ns(problem), SharedWork(problem).bound_ns()});
}

}  // namespace pardnn
