// The order of ids: topological, the least key first (rule D5).
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/graph/draft.h"

namespace pardnn {

// The records of the draft's ops in the order of their ids. Control edges from `every` ops do not
// count (rule X1). Throws Error for an input that does not exist and for a cycle, naming its ops.
std::vector<std::uint32_t> topological_order(const GraphDraft& draft);

}  // namespace pardnn
