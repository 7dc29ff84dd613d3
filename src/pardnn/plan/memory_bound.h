// A lower bound on memory: what all devices together cannot do without.
#pragma once

#include <cstdint>
#include <optional>

#include "pardnn/problem/problem.h"

namespace pardnn {

// What all devices together hold at one moment of any plan, what is set aside included.
struct MemoryBound {
  std::int64_t bytes = 0;
  std::optional<OpId> at;  // the moment this op starts; nothing: all the time
};

// All step long: what is set aside, each variable, each buffer of an `every` op that an ordinary op
// reads. When op v starts, besides, the outputs of v that take no buffer over, its workspace, and
// every tensor made by an ancestor of v and read, itself or through aliases, by v or a descendant
// of it, or fetched: some device holds it then, for the buffer behind the tensor lives until its
// last reader there and its last transfer have ended, a copy until its last reader, and neither is
// taken over before (rules M1, M2, M4b). On the way it may have been sent under the name of an
// alias, so the least size of all names from the maker to the reader counts. Tensors that are no
// aliases of each other never share a buffer while both are still to be read.
//
// Each moment takes one look at the whole graph, so not all are tried: those at which the order of
// the ids holds most, one in each stretch of it, as many as `kLooks` edges allow.
inline constexpr std::int64_t kLooks = 20'000'000;
MemoryBound memory_bound(const Problem& problem);

}  // namespace pardnn
