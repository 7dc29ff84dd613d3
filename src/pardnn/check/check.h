// The checker: recomputes a plan and its prediction by another hand and compares every number.
//
// It shares no code with the simulator: one naive event loop over the rules of docs/model.md,
// written for being read, not for speed.
#pragma once

#include <string>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// One sentence for each thing that is wrong, in the order found, at most `limit`; empty: the plan
// is valid and every predicted number is right. An overflow of memory is not an error here: a plan
// that does not fit says so by its score; whether it fits is `plan.score.fits()`, and the score is
// compared too.
std::vector<std::string> check(const Problem& problem, const Plan& plan, std::size_t limit = 20);

}  // namespace pardnn
