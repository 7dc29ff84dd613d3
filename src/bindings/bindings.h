// What the files of the Python module share: the wrapped objects and the function that adds each.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "pardnn/graph/graph.h"
#include "pardnn/problem/machine.h"
#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/warm_start.h"
#include "pardnn/report/explanation.h"

namespace pardnn::python {

// A graph that takes ops until something needs the whole of it. Ops are kept as lines of the graph
// file, so that Python and files have one grammar and one set of messages.
class PythonGraph {
 public:
  PythonGraph() = default;
  explicit PythonGraph(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {}

  // Appends a record. Throws Error once the graph is complete.
  void append(const std::string& line);
  // The complete graph. Throws Error when what was added is no graph.
  const std::shared_ptr<const Graph>& graph();

 private:
  std::string text_ = "pdg 1\n";
  std::shared_ptr<const Graph> graph_;
};

// A plan with the problem it answers, so that every name and limit can be asked for.
struct PythonPlan {
  std::shared_ptr<const Problem> problem;
  Plan plan;
  // What stands in the way when the plan does not fit, in sentences and as a JSON object; empty
  // otherwise. A plan that is wrong besides has sentences only.
  std::string why, explanation;
  std::optional<Moved> moves;  // where it was made from another plan
};

// The plan with what stands in its way: as far as it shows in the plan, or with the smallest
// changes that would make it fit, which are found by planning again.
PythonPlan explained(std::shared_ptr<const Problem> problem, Plan plan,
                     const std::optional<Explanation>& explanation);

void add_graph(nanobind::module_& module);
void add_machine(nanobind::module_& module);
void add_plan(nanobind::module_& module);      // the class Plan
void add_planning(nanobind::module_& module);  // plan, simulate, check

}  // namespace pardnn::python
