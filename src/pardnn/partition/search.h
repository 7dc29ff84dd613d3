// Search: shortens the step of the best proposal by placing windows of it anew, again and again.
#pragma once

#include <cstdint>

#include "pardnn/partition/best.h"
#include "pardnn/partition/rows.h"

namespace pardnn {

// Lanes, each with random numbers of its own, walk the lineup with windows of changing width, order
// and delay (see Windows) and keep what is not worse by Score. Without contention and with memory
// to spare that is known without a simulation; otherwise each try is simulated, and tries change
// fewer windows as long as they fail. After each step all lanes go on from the best of them, ties
// to the first; threads only execute lanes, so the answer does not depend on how many there are.
//
// Ends after `run.steps` steps, or when the budget is over, or, without either, after so many that
// it costs about as much as the rows did; and always when the step is as short as `bound_ns`, or
// after many steps in which nothing became shorter where no budget asks for more. What is found is
// offered to `best`. Answers the steps taken.
std::int64_t search(Best& best, std::int64_t bound_ns, const Run& run);

}  // namespace pardnn
