// Memory repair: moves units off devices that overflow until every device fits.
#pragma once

#include "pardnn/partition/best.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

inline constexpr int kRepairRounds = 200;

// Step 2 of ParDNN. Takes the device and moment of the largest overflow and there the units that
// free bytes at that moment, by transfer time added per byte freed; moves them, one after another,
// to the device with the most room until the device fits by the books, and simulates once. A batch
// after which the total overflow has not fallen is undone and not tried again; a unit leaves a
// device at most once. 64 candidates in a row that cannot go end a moment, and a repair that after
// six rounds is too slow for the rounds that are left ends as it is.
//
// Every accepted state is offered to `best`. Answers the last one.
struct Repaired {
  Proposal proposal;
  int rounds = 0;  // that it took
};
Repaired repair_memory(Best& best, const Times& times, std::string_view who, Proposal proposal,
                       const Run& run, int most_rounds = kRepairRounds);

}  // namespace pardnn
