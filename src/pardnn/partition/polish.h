// Polish: shortens the step of placements by listing again with what the last listing taught.
#pragma once

#include "pardnn/partition/best.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// Re-ranking: list scheduling ranks an op by the longest path behind it; once a placement is
// known, transfers count on that path only where it crosses devices, and list scheduling with that
// rank finds another placement. Repeated some rounds, which is not monotone, and for several
// delays of what comes from other devices; then ParDNN's steps with dearer crossings. All is
// offered to `best`. Large graphs get fewer rounds.
void polish(Best& best, const Times& times, const Run& run);

}  // namespace pardnn
