// What must be known before a graph can be planned: the costs that the machine's kinds ask for, and
// every size.
#pragma once

#include <optional>
#include <vector>

#include "pardnn/graph/graph.h"

namespace pardnn {

// Throws Error naming the first few that are unknown. `kinds` are those of the machine; an op of
// `every` needs no cost.
void check_known(const Graph& graph, const std::vector<std::optional<KindId>>& kinds);

}  // namespace pardnn
