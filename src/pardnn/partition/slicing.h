// Slicing, step 1a of ParDNN: K primary clusters along critical paths and many secondary ones.
#pragma once

#include <vector>

#include "pardnn/partition/flow.h"
#include "pardnn/partition/levels.h"

namespace pardnn {

// Linear clusters: every node follows the one before it by an edge. The first `primary_count` are
// primaries, some of them perhaps empty; the others are secondaries.
struct Slicing {
  std::size_t primary_count = 0;
  std::vector<std::vector<NodeId>> clusters;
  ClusterOfNode cluster_of;
  Levels levels;  // transfers inside primaries at zero
};

// Primaries: from the node of greatest bottom level along the readers of greatest bottom level,
// over what is left, levels anew each time; a path of one node is none. Secondaries: from the node
// of greatest level, ties nearer the start, along the reader of greatest bottom level until that
// one is taken. Ties end with the least id. O(primaries * (V + E) + V log V).
Slicing slice(const Flow& flow, std::size_t primaries);

}  // namespace pardnn
