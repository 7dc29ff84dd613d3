// Which groups can become one node each, all of them together, without closing a cycle.
#pragma once

#include <vector>

#include "pardnn/problem/problem.h"

namespace pardnn {

// One list of ops per node, in a topological order of the nodes; `every` ops are in none.
std::vector<std::vector<OpId>> contract_convex_groups(const Problem& problem);

}  // namespace pardnn
