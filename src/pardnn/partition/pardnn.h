// Row `pardnn`: the published method (Qararyah, Wahib, Dikbayir, Belviranli, Unat, "A
// computational-graph partitioning method for training memory-constrained DNNs", 2020).
#pragma once

#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// Slicing, mapping, clusters to devices, groups, refinement; each step in the file of its name.
// Memory, its step 2, is the runner's repair. Where transfers dominate both variants of the mapping
// are tried and the one with the shorter simulated step goes on.
Proposal pardnn_row(const Problem& problem, const Run& run);

// The same with crossing times of one's own.
Proposal cluster_and_refine(const Problem& problem, const Times& times, const Run& run);

}  // namespace pardnn
