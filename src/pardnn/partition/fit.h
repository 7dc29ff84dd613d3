// Fit: when no row's answer fits, many placements and orders, each repaired, until one does.
#pragma once

#include <vector>

#include "pardnn/partition/best.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// The order is a lever of its own: by rank alone, weight gradients and updates starve and saved
// values stay. Live lists choose devices and order together (see live_list.h), again and again with
// less for devices that came out too full. Other placements, those of the rows (`starts`), folded
// splits balanced by time, by peak bytes and by both, and list schedules that share out bytes, are
// tried under several orders each. All are repaired. How many are tried follows from the number
// of ops. Keeps what is best in `best`.
void fit_into_memory(Best& best, const Times& times, const std::vector<Proposal>& starts,
                     const Run& run);

}  // namespace pardnn
