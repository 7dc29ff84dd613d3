#include "pardnn/partition/starts.h"

#include <algorithm>
#include <iterator>

#include "pardnn/partition/orders.h"

namespace pardnn {

Start start_of(const Problem& problem, const Plan& plan) {
  Start start{.who = plan.algorithm, .proposal = {}};
  UnitPlacement& placement = start.proposal.placement;
  placement = UnitPlacement(problem.units().size(), DeviceId{});
  for (const UnitId unit : problem.units()) {
    placement[unit] = problem.ops(unit).empty()
                          ? plan.placement.variables[problem.variables(unit).front()]
                          : *plan.placement.ops[problem.ops(unit).front()];
  }
  start.proposal.order = order_by(problem.graph(), plan.prediction.start_ns);
  return start;
}

Plan Ladder::plan(const Problem& problem, std::string_view algorithm, const Run& run) {
  Plan plan = make_plan(problem, algorithm, run, tighter_);
  here_.push_back(start_of(problem, plan));
  return plan;
}

void Ladder::loosen() {
  std::ranges::move(here_, std::back_inserter(tighter_));
  here_.clear();
}

}  // namespace pardnn
