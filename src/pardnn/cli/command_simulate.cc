// `pardnn simulate`: when everything of a plan, or of a placement of the user's own, happens.
#include <optional>
#include <ostream>
#include <string>

#include "pardnn/cli/commands.h"
#include "pardnn/cli/graph_files.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/files.h"
#include "pardnn/io/placement_csv.h"
#include "pardnn/io/plan_json.h"
#include "pardnn/partition/given.h"
#include "pardnn/report/explanation.h"
#include "pardnn/report/summary.h"
#include "pardnn/report/trace.h"

namespace pardnn::cli {

namespace {

struct SimulateOptions {
  ReaderOptions reader;
  MachineOptions machine;
  RuleOptions rules;
  std::string placement, trace, output;
  std::vector<std::string> of_problem;  // options given that state machine or rules
  bool json = false, help = false;

  std::vector<Option> table() {
    std::vector<Option> problem = joined(machine.table(), rules.table());
    for (Option& option : problem) {
      option.set = [this, set = option.set, name = option.names](std::string_view text) {
        of_problem.emplace_back(name);
        set(text);
      };
    }
    return joined(
        joined(std::move(problem), reader.table()),
        {
            {"--placement", "FILE", "instead of a plan: CSV, a key and a device a line",
             [this](std::string_view text) { placement = text; }},
            {"--trace", "FILE", "write a timeline for Chrome's or Perfetto's viewer",
             [this](std::string_view text) { trace = text; }},
            {"-o, --output", "FILE", "write the plan with its prediction there",
             [this](std::string_view text) { output = text; }},
            {"--json", "", "print the summary as JSON", [this](std::string_view) { json = true; }},
            {"-h, --help", "", "this text", [this](std::string_view) { help = true; }},
        });
  }
};

// The plan of a file, simulated anew on the machine it names.
PlanFile from_plan(const std::vector<std::string>& files, std::shared_ptr<const Graph> graph) {
  PlanFile file = read_plan(read_file(files[1]), files[1], std::move(graph));
  const Plan stated = file.plan;
  file.plan = plan_of(file.problem, stated.placement, stated.sequences);
  file.plan.algorithm = stated.algorithm;
  file.plan.seed = stated.seed;
  file.plan.steps = stated.steps;
  return file;
}

}  // namespace

int simulate(const std::vector<std::string>& words, Console& console) {
  SimulateOptions options;
  const auto table = options.table();
  const auto files = parse_options(words, table);
  if (options.help) {
    console.out
        << "usage: pardnn simulate GRAPH PLAN\n"
           "       pardnn simulate GRAPH --placement FILE --devices N --memory SIZE [...]\n\n"
           "Runs a plan on paper and prints what comes out. With --placement the ops of each\n"
           "device are listed by the longest path that follows them. Exit status 1: it does not\n"
           "fit.\n\n"
        << describe_options(table)
        << "\nexample: pardnn simulate step.pdg plan.json --trace step.json\n";
    return kDone;
  }
  const std::size_t expected = options.placement.empty() ? 2 : 1;
  if (files.size() != expected) {
    throw UsageError("found " + std::to_string(files.size()) + " files, expected " +
                     (expected == 2 ? "a graph and a plan" : "a graph"));
  }
  if (options.placement.empty() && !options.of_problem.empty()) {
    throw UsageError("found " + options.of_problem.front() +
                     " with a plan, which states its machine and rules itself, expected it with "
                     "--placement only");
  }
  auto graph = options.rules.apply(options.reader.read(files.front()));
  const auto file = [&]() -> PlanFile {
    if (options.placement.empty()) return from_plan(files, graph);
    Problem problem(graph, options.machine.machine(*graph), options.rules.rules);
    const Placement placement =
        read_placement(read_file(options.placement), options.placement, problem);
    Plan plan = plan_of(problem, placement, std::nullopt);
    return {std::move(problem), std::move(plan)};
  }();
  if (!options.trace.empty()) {
    write_file_atomically(options.trace, trace_json(file.problem, file.plan));
  }
  if (!options.output.empty()) {
    write_file_atomically(options.output, write_plan(file.problem, file.plan));
  }
  const auto explanation = explain(file.problem, file.plan);
  console.out << (options.json ? summary_json(file.problem, file.plan, explanation)
                               : summary_text(file.problem, file.plan));
  console.err << explanation_text(file.problem, file.plan, explanation);
  return file.plan.score.fits() ? kDone : kNo;
}

}  // namespace pardnn::cli
