// Copies of what a graph holds as records for a builder: a graph does not change, another is built.
#pragma once

#include "pardnn/graph/builder.h"
#include "pardnn/graph/graph.h"

namespace pardnn {

// Kinds and `about` lines.
void copy_head(const Graph& graph, GraphBuilder& builder);

// Texts in a spec lie in the graph, which must outlive it.
VariableSpec spec_of(const Graph& graph, VariableId variable);
OpSpec spec_of(const Graph& graph, OpId op);

}  // namespace pardnn
