// Slicing, step 1a of ParDNN.
#include "pardnn/partition/slicing.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace pardnn {
namespace {

// The reader of greatest bottom level, ties to the least id, among those that `admits` lets in.
template <class Admits>
std::optional<NodeId> heaviest_reader(const Flow& flow, NodeId node,
                                      const Table<NodeId, std::int64_t>& bottom, Admits admits) {
  std::optional<NodeId> best;
  for (const ValueId value : flow.made(node)) {
    for (const NodeId reader : flow.readers(value)) {
      if (!admits(reader)) continue;
      if (!best || std::tuple(bottom[*best], reader) < std::tuple(bottom[reader], *best)) {
        best = reader;
      }
    }
  }
  return best;
}

std::vector<NodeId> critical_path(const Flow& flow, const ClusterOfNode& taken,
                                  const Table<NodeId, std::int64_t>& bottom) {
  std::optional<NodeId> start;
  for (const NodeId node : flow.nodes()) {
    if (!taken[node] && (!start || bottom[node] > bottom[*start])) start = node;
  }
  std::vector<NodeId> path;
  for (std::optional<NodeId> node = start; node.has_value();) {
    path.push_back(*node);
    node = heaviest_reader(flow, *node, bottom, [&](NodeId reader) { return !taken[reader]; });
  }
  return path;
}

void add_cluster(Slicing& slicing, std::vector<NodeId> nodes) {
  for (const NodeId node : nodes) {
    slicing.cluster_of[node] = ClusterId{static_cast<std::uint32_t>(slicing.clusters.size())};
  }
  slicing.clusters.push_back(std::move(nodes));
}

void cut_secondaries(const Flow& flow, Slicing& slicing) {
  const Levels& levels = slicing.levels;
  std::vector<NodeId> nodes;
  for (const NodeId node : flow.nodes()) {
    if (!slicing.cluster_of[node]) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    return std::tuple(levels.level(b), levels.bottom[b], a) <
           std::tuple(levels.level(a), levels.bottom[a], b);
  });
  for (const NodeId head : nodes) {
    if (slicing.cluster_of[head]) continue;
    const ClusterId cluster{static_cast<std::uint32_t>(slicing.clusters.size())};
    std::vector<NodeId> path;
    for (std::optional<NodeId> node = head; node && !slicing.cluster_of[*node];) {
      path.push_back(*node);
      slicing.cluster_of[*node] = cluster;
      node = heaviest_reader(flow, *node, levels.bottom, [](NodeId) { return true; });
    }
    slicing.clusters.push_back(std::move(path));
  }
}

}  // namespace

Slicing slice(const Flow& flow, std::size_t primaries) {
  Slicing slicing{.primary_count = primaries,
                  .clusters = {},
                  .cluster_of = ClusterOfNode(flow.nodes().size()),
                  .levels = {}};
  Table<NodeId, std::int64_t> bottom(flow.nodes().size(), 0);
  while (slicing.clusters.size() < primaries) {
    bottom_levels_of_rest(flow, slicing.cluster_of, bottom);
    std::vector<NodeId> path = critical_path(flow, slicing.cluster_of, bottom);
    if (path.size() < 2) break;
    add_cluster(slicing, std::move(path));
  }
  slicing.clusters.resize(primaries);
  slicing.levels = levels_of(flow, slicing.cluster_of);
  cut_secondaries(flow, slicing);
  return slicing;
}

}  // namespace pardnn
