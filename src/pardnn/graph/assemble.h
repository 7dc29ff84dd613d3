// The flat arrays of a Graph, made from a draft and the order of its ops.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pardnn/graph/draft.h"

namespace pardnn {

// Throws Error when an op has neither one cost nor one per kind.
std::shared_ptr<const Graph> assemble(const GraphDraft& draft,
                                      const std::vector<std::uint32_t>& order);

}  // namespace pardnn
