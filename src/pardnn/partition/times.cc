// Times that planners ask for again and again.
#include "pardnn/partition/times.h"

#include <algorithm>
#include <unordered_map>

#include "pardnn/partition/edges.h"

namespace pardnn {
namespace {

// Tensors of a step have few distinct sizes; each is computed once.
template <class Compute>
Table<TensorId, std::int64_t> by_size(const Problem& problem, Compute compute) {
  Table<TensorId, std::int64_t> answer(problem.graph().tensors().size());
  std::unordered_map<std::int64_t, std::int64_t> known;
  for (const TensorId tensor : problem.graph().tensors()) {
    const std::int64_t bytes = problem.bytes(tensor);
    const auto [it, fresh] = known.try_emplace(bytes, 0);
    if (fresh) it->second = compute(bytes);
    answer[tensor] = it->second;
  }
  return answer;
}

std::int64_t weighted(std::int64_t ns, std::int64_t weight) {
  return ns > kMaxQuantity / weight ? kMaxQuantity : ns * weight;
}

bool same_times(const Link& a, const Link& b) {
  return a.bytes_per_second == b.bytes_per_second && a.overhead_ns == b.overhead_ns;
}

// The first two devices that have a link, when every link takes the same time as theirs.
std::optional<std::pair<DeviceId, DeviceId>> typical_link(const Problem& problem) {
  std::optional<std::pair<DeviceId, DeviceId>> first;
  for (const DeviceId from : problem.devices()) {
    for (const DeviceId to : problem.devices()) {
      if (from == to || !problem.has_link(from, to)) continue;
      if (!first.has_value()) first.emplace(from, to);
      if (!same_times(problem.link(from, to), problem.link(first->first, first->second))) {
        return std::nullopt;
      }
    }
  }
  return first;
}

template <class Crosses>
Table<OpId, std::int64_t> bottom_levels_where(const Problem& problem, const Times& times,
                                              Crosses crosses) {
  const Graph& graph = problem.graph();
  Table<OpId, std::int64_t> level(graph.ops().size(), 0);
  for (std::size_t n = graph.ops().size(); n-- > 0;) {
    const OpId op = graph.ops()[n];
    if (graph.is_every(op)) continue;
    std::int64_t longest = 0;
    for_each_reader(graph, op, [&](OpId reader, std::optional<TensorId> tensor) {
      const std::int64_t crossing = crosses(op, reader) ? times.mean_crossing_ns(tensor) : 0;
      longest = std::max(longest, saturating_add(crossing, level[reader]));
    });
    level[op] = saturating_add(longest, problem.mean_duration_ns(op));
  }
  return level;
}

}  // namespace

Times::Times(const Problem& problem, std::int64_t weight)
    : problem_(problem),
      crossing_ns_(by_size(
          problem,
          [&](std::int64_t bytes) { return weighted(problem.mean_crossing_ns(bytes), weight); })),
      control_crossing_ns_(weighted(problem.mean_crossing_ns(0), weight)) {
  const auto link = typical_link(problem);
  if (!link.has_value()) return;
  alike_ = true;
  control_busy_ns_ = problem.busy_ns(0, link->first, link->second);
  busy_ns_ = by_size(problem, [&](std::int64_t bytes) {
    return problem.busy_ns(bytes, link->first, link->second);
  });
}

Table<OpId, std::int64_t> bottom_levels(const Problem& problem, const Times& times) {
  return bottom_levels_where(problem, times, [](OpId, OpId) { return true; });
}

Table<OpId, std::int64_t> bottom_levels(const Problem& problem, const Times& times,
                                        const UnitPlacement& placement) {
  return bottom_levels_where(problem, times, [&](OpId a, OpId b) {
    return placement[*problem.unit(a)] != placement[*problem.unit(b)];
  });
}

Table<OpId, std::int64_t> earliest_starts(const Problem& problem) {
  const Graph& graph = problem.graph();
  Table<OpId, std::int64_t> start(graph.ops().size(), 0);
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId>) {
      start[op] =
          std::max(start[op], saturating_add(start[producer], problem.mean_duration_ns(producer)));
    });
  }
  return start;
}

}  // namespace pardnn
