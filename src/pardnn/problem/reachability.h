// Reachability: is there a path from one op to another, through data and control edges?
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/graph/graph.h"

namespace pardnn {

// Each op hangs in a forest below its deepest predecessor, so the long chains of a training step
// are tree paths and most questions are answered by two comparisons of positions in a preorder.
// The others search forward, pruned by depth (a path only goes deeper) and cut short where the
// forest answers. O(ops + edges) to build; a question costs what its search visits.
class Reachability {
 public:
  explicit Reachability(const Graph& graph);
  bool path(OpId from, OpId to);  // false for an op and itself

 private:
  bool in_subtree(OpId root, OpId op) const {
    return first_[root] <= first_[op] && first_[op] < end_[root];
  }

  const Graph& graph_;
  Table<OpId, std::uint32_t> depth_, first_, end_;  // preorder: the subtree is [first, end)
  Table<OpId, std::uint32_t> visited_in_;           // number of the question that saw the op
  std::uint32_t question_ = 0;
  std::vector<OpId> open_;
};

}  // namespace pardnn
