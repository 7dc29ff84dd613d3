// Footprints: what an op or a unit needs on its device, whatever the plan.
#pragma once

#include <cstdint>

#include "pardnn/problem/problem.h"

namespace pardnn {

// The least bytes that can lie behind each tensor where it is read. A tensor, or on another device
// a copy of it, may lie behind an alias, or the alias itself is sent: the least of the sizes of the
// tensor and of all that it is an alias of.
Table<TensorId, std::int64_t> least_buffer_bytes(const Problem& problem);

std::int64_t variable_bytes(const Problem& problem, UnitId unit);

// The unit's variables and the most that one of its ops needs besides when it starts: each buffer
// behind its inputs once, its outputs but those that may take one over, its workspace. `behind` as
// above.
std::int64_t least_bytes(const Problem& problem, UnitId unit,
                         const Table<TensorId, std::int64_t>& behind);

// Outputs that surely have a buffer of their own from the start of the op, and its workspace.
std::int64_t made_bytes(const Problem& problem, OpId op);

}  // namespace pardnn
