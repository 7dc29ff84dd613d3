// Levels of a flow: how long the longest paths to and from each node are.
#pragma once

#include <cstdint>
#include <optional>

#include "pardnn/partition/flow.h"

namespace pardnn {

enum class ClusterId : std::uint32_t {};

// Clusters of a slicing, by node. Nodes of no cluster yet have none.
using ClusterOfNode = Table<NodeId, std::optional<ClusterId>>;

struct Levels {
  Table<NodeId, std::int64_t> top;     // longest path from the start, own time left out
  Table<NodeId, std::int64_t> bottom;  // longest path to the end, own time included
  std::int64_t length_ns = 0;          // longest path of all

  std::int64_t level(NodeId node) const { return saturating_add(top[node], bottom[node]); }
};

// Transfers count their mean time, those inside one cluster nothing.
Levels levels_of(const Flow& flow, const ClusterOfNode& clusters);

// Bottom levels over the nodes that are in no cluster yet; the others have 0.
void bottom_levels_of_rest(const Flow& flow, const ClusterOfNode& clusters,
                           Table<NodeId, std::int64_t>& bottom);

}  // namespace pardnn
