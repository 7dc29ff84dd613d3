// Plan files: JSON that states a plan, its problem and its prediction, and names its graph by hash.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

inline constexpr std::int64_t kPlanVersion = 1;  // of the file

std::string write_plan(const Problem& problem, const Plan& plan);

// Graph, rules and machine as a plan file states them: equal for equal problems.
std::string stated_problem(const Problem& problem);

struct PlanFile {
  Problem problem;  // the given graph on the machine and under the rules that the file states
  Plan plan;
};

// Throws Error `source: …` when the text is no plan, or is one of another graph: it says whether
// the ops, their number or only costs and sizes differ.
PlanFile read_plan(std::string_view text, std::string_view source,
                   std::shared_ptr<const Graph> graph);

}  // namespace pardnn
