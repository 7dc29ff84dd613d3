// Coarsening of a cut: heavy edges first.
//
// Lumps are visited in order; each joins the neighbour, or the cluster that the neighbour is in,
// to which its wires are dearest, a wire of n members counting 1 / (n - 1) towards each. Clusters
// of one pass stay small, so that the levels differ by a factor and refinement has its say at each
// (Karypis and Kumar 1998 match pairs; clusters keep stars from stalling).
#include "pardnn/partition/cut_coarsen.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace pardnn {
namespace {

constexpr std::size_t kCoarsest = 400;        // lumps; below that nothing is gained
constexpr std::size_t kMostMembers = 64;      // of a wire that says who belongs together
constexpr std::uint32_t kLargestCluster = 3;  // lumps, in one pass
constexpr std::int64_t kPartOfCap = 4;        // a lump weighs at most a 1 / kPartOfCap of a cap

class Clustering {
 public:
  Clustering(const CutGraph& graph, const std::vector<std::int64_t>& limits)
      : graph_(graph),
        limits_(limits),
        cluster_(graph.lumps().size()),
        size_(graph.lumps().size(), 1),
        weights_(graph.weights),
        pull_ns_(graph.lumps().size(), 0) {
    for (const LumpId lump : graph.lumps()) cluster_[lump] = lump;
  }

  // Each lump's cluster, numbered by their least lumps; how many there are.
  std::size_t run(Table<LumpId, LumpId>& answer) {
    for (const LumpId lump : graph_.lumps()) {
      if (cluster_[lump] != lump || size_[lump] > 1) continue;
      if (const std::optional<LumpId> best = dearest(lump)) join(lump, *best);
    }
    std::uint32_t count = 0;
    Table<LumpId, std::optional<LumpId>> number(graph_.lumps().size());
    answer = Table<LumpId, LumpId>(graph_.lumps().size());
    for (const LumpId lump : graph_.lumps()) {
      std::optional<LumpId>& mine = number[cluster_[lump]];
      if (!mine.has_value()) mine = LumpId{count++};
      answer[lump] = *mine;
    }
    return count;
  }

 private:
  std::optional<LumpId> dearest(LumpId lump) {
    near_.clear();
    for (const WireId wire : graph_.wires[lump]) {
      const auto members = graph_.members[wire];
      if (members.size() > kMostMembers) continue;
      const std::int64_t pull_ns =
          1 + graph_.crossing_ns[wire] / static_cast<std::int64_t>(members.size() - 1);
      for (const LumpId member : members) {
        const LumpId cluster = cluster_[member];
        if (cluster == lump) continue;
        if (pull_ns_[cluster] == 0) near_.push_back(cluster);
        pull_ns_[cluster] = saturating_add(pull_ns_[cluster], pull_ns);
      }
    }
    std::optional<LumpId> best;
    const auto key = [&](LumpId cluster) {
      return std::tuple(-pull_ns_[cluster], size_[cluster], cluster);
    };
    for (const LumpId cluster : near_) {
      if (may_join(lump, cluster) && (!best || key(cluster) < key(*best))) best = cluster;
    }
    for (const LumpId cluster : near_) pull_ns_[cluster] = 0;
    return best;
  }

  bool may_join(LumpId lump, LumpId cluster) const {
    if (size_[cluster] >= kLargestCluster) return false;
    if (graph_.allowed[lump] != graph_.allowed[cluster]) return false;
    const std::size_t count = graph_.weight_count;
    for (std::size_t n = 0; n < count; ++n) {
      const std::int64_t more = weights_[index(lump) * count + n];
      if (more > 0 && weights_[index(cluster) * count + n] + more > limits_[n]) return false;
    }
    return true;
  }

  void join(LumpId lump, LumpId cluster) {
    cluster_[lump] = cluster;
    ++size_[cluster];
    const std::size_t count = graph_.weight_count;
    for (std::size_t n = 0; n < count; ++n) {
      weights_[index(cluster) * count + n] += weights_[index(lump) * count + n];
    }
  }

  const CutGraph& graph_;
  const std::vector<std::int64_t>& limits_;
  Table<LumpId, LumpId> cluster_;        // the lump that it is named after
  Table<LumpId, std::uint32_t> size_;    // of the clusters, by their names
  std::vector<std::int64_t> weights_;    // likewise
  Table<LumpId, std::int64_t> pull_ns_;  // of the clusters near_ the lump in question, else 0
  std::vector<LumpId> near_;
};

}  // namespace

std::vector<CutLevel> coarsen(CutGraph finest, const CutCaps& caps) {
  std::vector<std::int64_t> limits(caps.weight_count, std::numeric_limits<std::int64_t>::max());
  for (std::size_t at = 0; at < caps.caps.size(); ++at) {
    std::int64_t& limit = limits[at % caps.weight_count];
    limit = std::min(limit, caps.caps[at] / kPartOfCap);
  }
  std::vector<CutLevel> levels;
  levels.push_back({std::move(finest), {}});
  while (true) {
    const CutGraph& graph = levels.back().graph;
    const std::size_t lumps = graph.lumps().size();
    if (lumps <= kCoarsest) return levels;
    Table<LumpId, LumpId> cluster;
    const std::size_t count = Clustering(graph, limits).run(cluster);
    if (count > lumps - lumps / 20) return levels;
    CutGraph coarser = contract(graph, cluster, count);
    levels.back().coarser = std::move(cluster);
    levels.push_back({std::move(coarser), {}});
  }
}

}  // namespace pardnn
