// Mapping, step 1b of ParDNN: every secondary cluster joins a primary.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/partition/flow.h"
#include "pardnn/partition/slicing.h"

namespace pardnn {

// The primary that each node ends in.
using PrimaryOfNode = Table<NodeId, ClusterId>;

// When a secondary may join a primary that it talks to.
enum class Talk : std::uint8_t {
  kOnlyToIt,    // it exchanges values with no other cluster
  kMostlyToIt,  // it exchanges as much with it as with all other primaries together
};

// Rounds merge secondaries, short spans first, into the primary they talk to most, as long as the
// work in their span stays even or the transfers saved outweigh it; what is left goes where least
// work lies in its span. Work is kept in one Fenwick tree per primary, booked whole at the top
// level of each node. O(rounds * (E + V * primaries * log V)), at most 8 rounds.
PrimaryOfNode map_to_primaries(const Flow& flow, const Slicing& slicing, Talk talk);

// Whether transfers weigh so much that Talk::kMostlyToIt is worth a try besides: their total time
// over all work, rounded up, is at least 10 and at least twice all work over the first primary's.
bool communication_dominates(const Flow& flow, const Slicing& slicing);

}  // namespace pardnn
