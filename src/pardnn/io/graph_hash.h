// The name of a graph: equal for files that mean the same, different for all others.
#pragma once

#include <string>

#include "pardnn/graph/graph.h"

namespace pardnn {

// SHA-256 over the canonical text without about, name and x-…, as 64 hexadecimal digits.
std::string graph_hash(const Graph& graph);

}  // namespace pardnn
