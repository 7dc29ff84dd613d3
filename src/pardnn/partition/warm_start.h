// Warm start: a plan made from one made before, of which few ops move.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pardnn/plan/old_plan.h"
#include "pardnn/partition/rows.h"

namespace pardnn {

// Another plan than the old one is worth moving ops for when its step is shorter by more than this.
inline constexpr std::int64_t kWorthMovingPerMille = 50;

// Units lie where the old plan has them; the others go, one by one, to where list scheduling starts
// them first beside those. Of this placement several orders are tried, the old one first, and
// repaired where memory is short. It is a start of `auto`. Then plans are compared, from the fewest
// ops moved to the most: the old placement, the same after some critical-path moves, that one
// searched, and what `auto` found. Each must be shorter than the one before by
// kWorthMovingPerMille, or overflow by less, to be taken instead. So the answer is never worse than
// the old plan in its old order. Where the problem is the very same, the old plan fits, and neither
// budget nor steps ask for a search, it stays.
Plan plan_from(const Problem& problem, const OldPlan& old, const Run& run);

struct Moved {
  std::size_t matched = 0;  // ops of the graph that the old plan has
  std::size_t moved = 0;    // of them, those on another device than before
  std::size_t added = 0;    // ops that the old plan has not
  std::size_t gone = 0;     // ops of the old plan that the graph has not
};
Moved moves_from(const Problem& problem, const OldPlan& old, const Plan& plan);

}  // namespace pardnn
