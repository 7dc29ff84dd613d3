// Rows `m-etf` and `m-sct`: list scheduling that gives no device more bytes than its part.
//
// Favourites come from a linear program in the paper: which transfers to avoid, at most one into
// and one out of every op, so that the longest path becomes shortest. Here they are chosen
// greedily: the transfers on the longest paths first. O(edges * log edges).
#include "pardnn/partition/memory_capped.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "pardnn/partition/byte_caps.h"
#include "pardnn/partition/edges.h"

namespace pardnn {
namespace {

struct Edge {
  std::int64_t minus_path_ns, minus_crossing_ns;  // least first
  OpId producer, reader;
  auto operator<=>(const Edge&) const = default;
};

Table<OpId, std::int64_t> top_levels(const Problem& problem, const Times& times) {
  const Graph& graph = problem.graph();
  Table<OpId, std::int64_t> level(graph.ops().size(), 0);
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId> tensor) {
      const std::int64_t made_ns =
          saturating_add(level[producer], problem.mean_duration_ns(producer));
      level[op] = std::max(level[op], saturating_add(made_ns, times.mean_crossing_ns(tensor)));
    });
  }
  return level;
}

}  // namespace

FavouriteOf favourites(const Problem& problem, const Times& times) {
  const Graph& graph = problem.graph();
  const Table<OpId, std::int64_t> top = top_levels(problem, times);
  const Table<OpId, std::int64_t> bottom = bottom_levels(problem, times);
  std::vector<Edge> edges;
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    const std::int64_t made_ns = saturating_add(top[op], problem.mean_duration_ns(op));
    for_each_reader(graph, op, [&](OpId reader, std::optional<TensorId> tensor) {
      const std::int64_t crossing_ns = times.mean_crossing_ns(tensor);
      const std::int64_t path_ns =
          saturating_add(saturating_add(made_ns, crossing_ns), bottom[reader]);
      edges.push_back({-path_ns, -crossing_ns, op, reader});
    });
  }
  std::sort(edges.begin(), edges.end());
  FavouriteOf parent(graph.ops().size());
  Table<OpId, char> has_favourite(graph.ops().size(), 0);
  for (const Edge& edge : edges) {
    if (has_favourite[edge.producer] || parent[edge.reader].has_value()) continue;
    has_favourite[edge.producer] = 1;
    parent[edge.reader] = {.op = edge.producer, .crossing_ns = -edge.minus_crossing_ns};
  }
  return parent;
}

Proposal m_etf(const Problem& problem, const Run&) {
  const Times times(problem);
  return earliest_task_first(problem, times, bottom_levels(problem, times),
                             {.bytes_per_mille = cap_per_mille(problem)});
}

Proposal m_sct(const Problem& problem, const Run&) {
  const Times times(problem);
  const FavouriteOf favourite_of = favourites(problem, times);
  return earliest_task_first(
      problem, times, bottom_levels(problem, times),
      {.bytes_per_mille = cap_per_mille(problem), .favourite_of = &favourite_of});
}

}  // namespace pardnn
