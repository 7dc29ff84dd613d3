// Tangles: small random graphs in which every rule of the model meets every other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pardnn/graph/graph.h"

namespace pardnn::properties {

// A graph of about this many ops that obeys all rules: aliases of aliases, outputs that may take
// buffers over, ops that modify tensors and variables in place, variables read before and after
// updates, constants, control edges, fetched and empty tensors, workspace, groups; half of them
// with kinds gpu and cpu (there must be a device of each), half with a given order. Keys are in no
// order.
std::shared_ptr<const Graph> make_tangle(std::size_t ops, std::uint64_t seed);

}  // namespace pardnn::properties
