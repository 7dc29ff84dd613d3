// Wishes from the command line, --pin and --group, worked into a graph.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pardnn/graph/graph.h"

namespace pardnn::cli {

// A new graph with
// - the ops whose name has a match for a pin's expression on that device or kind (instead of what
//   the op itself asked for; pins of its group still hold),
// - the ops whose name has a match for an expression of `groups` in one group, together with the
//   groups they were in.
// An op's name is its `name`, or its key where it has none. Throws UsageError for an expression
// that is none, or that matches nothing.
std::shared_ptr<const Graph> with_wishes(
    const Graph& graph, const std::vector<std::pair<std::string, std::string>>& pins,
    const std::vector<std::string>& groups);

}  // namespace pardnn::cli
