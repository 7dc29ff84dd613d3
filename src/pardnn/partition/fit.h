// Fit: when rows' answers do not fit, they and many placements and orders are repaired.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "pardnn/partition/best.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// What a row proposed, and how it scored.
struct Proposed {
  std::string_view who;
  Proposal proposal;
  std::optional<Score> score;  // nothing: it cannot run
  bool may_be_repaired = true;

  bool overflows() const { return may_be_repaired && score.has_value() && !score->fits(); }
};

// Those whose steps will be shortest first. A row of a large graph is left as it is when its step
// would be longer by a tenth than a plan that fits.
void repair_rows(Best& best, const Times& times, const std::vector<Proposed>& proposed,
                 const Run& run);

// The order is a lever of its own: by rank alone, weight gradients and updates starve and saved
// values stay. Live lists choose devices and order together (see live_list.h), again and again with
// less for devices that came out too full; they come first, because what fits already spares other
// repairs. Then the rows are repaired, and other placements, those of the rows, folded splits
// balanced by time, by peak bytes and by both, and list schedules that share out bytes, are tried
// under several orders each, and repaired. How many are tried follows from the number of ops. Keeps
// what is best in `best`.
void fit_into_memory(Best& best, const Times& times, const std::vector<Proposed>& proposed,
                     const Run& run);

}  // namespace pardnn
