// What the rules of the model forbid in a graph by itself, whatever machine it runs on.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/graph/draft.h"
#include "pardnn/graph/graph.h"

namespace pardnn {

// `order` holds the draft's record of every op, for places in messages. Throws Error for a breach
// of V2 (variables and groups), X1 (`every` ops), the group condition of M4 (modified buffers),
// D4b (`at`) and for times or bytes that sum to 2^62 or more. Linear in the size of the graph.
void check_rules(const Graph& graph, const GraphDraft& draft,
                 const std::vector<std::uint32_t>& order);

}  // namespace pardnn
