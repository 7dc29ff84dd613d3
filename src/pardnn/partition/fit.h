// Fit: when no row's answer fits, many placements and orders, each repaired, until one does.
#pragma once

#include <vector>

#include "pardnn/partition/best.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// The order is a lever of its own: by rank alone, weight gradients and updates starve and saved
// values stay. Each placement is tried under several orders and its best is repaired; placements
// are those of the rows (`starts`), folded splits balanced by time, by peak bytes and by both, and
// list schedules that share out bytes. Keeps what is best in `best`.
void fit_into_memory(Best& best, const Times& times, const std::vector<Proposal>& starts,
                     const Run& run);

}  // namespace pardnn
