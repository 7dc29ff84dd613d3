// Row `heft`: ops by the longest path behind them, each to where it would finish first (Topcuoglu,
// Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
// computing", 2002).
#pragma once

#include "pardnn/partition/rows.h"

namespace pardnn {

// Upward rank with mean times; ties to the least op and the least device. An op may start in a gap
// between ops that were placed before it. The first op of a unit decides for all of it.
Proposal heft(const Problem& problem, const Run& run);

}  // namespace pardnn
