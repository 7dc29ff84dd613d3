// Rule M4: an op that modifies a buffer comes after everything that still needs what was in it.
#pragma once

#include "pardnn/graph/graph.h"

namespace pardnn {

// Throws Error naming both ops where the edges leave the order of a modifying op (`!X`) and
// another op on the same buffer open. That they share a group was checked when the graph was built.
void check_in_place(const Graph& graph);

}  // namespace pardnn
