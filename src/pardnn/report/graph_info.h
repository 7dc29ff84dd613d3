// What is in a graph: counts, bytes, work, its longest path and what is missing for planning.
#pragma once

#include <string>

#include "pardnn/graph/graph.h"

namespace pardnn {

std::string graph_info_text(const Graph& graph, const std::string& hash);
std::string graph_info_json(const Graph& graph, const std::string& hash);

}  // namespace pardnn
