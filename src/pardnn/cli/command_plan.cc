// `pardnn plan`: places a graph on a machine, prints what is predicted, writes the plan.
#include <chrono>
#include <optional>
#include <ostream>
#include <string>

#include "pardnn/base/integers.h"
#include "pardnn/base/quantity.h"
#include "pardnn/cli/commands.h"
#include "pardnn/cli/graph_files.h"
#include "pardnn/cli/interrupt.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/files.h"
#include "pardnn/io/old_plan_json.h"
#include "pardnn/io/plan_json.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/warm_start.h"
#include "pardnn/report/explanation.h"
#include "pardnn/report/summary.h"

namespace pardnn::cli {

namespace {

struct PlanOptions {
  ReaderOptions reader;
  MachineOptions machine;
  RuleOptions rules;
  std::string algorithm = "auto";
  Run run;
  std::string from, output;
  bool json = false, help = false;

  std::vector<Option> table() {
    return joined(
        joined(joined(machine.table(), rules.table()), reader.table()),
        {
            {"--algorithm", "NAME", "the planner (auto): " + names(),
             [this](std::string_view text) {
               if (!is_algorithm(text)) reject("--algorithm", text, "one of " + names());
               algorithm = text;
             }},
            {"--budget", "TIME", "stop searching after this long",
             [this](std::string_view text) {
               run.budget = std::chrono::nanoseconds(ns_of("--budget", text));
             }},
            {"--steps", "N", "search this many steps: the same plan every time",
             [this](std::string_view text) {
               run.steps = integer_of("--steps", text, 0, kMaxQuantity);
             }},
            {"--seed", "N", "of the search (0)",
             [this](std::string_view text) {
               run.seed = static_cast<std::uint64_t>(integer_of("--seed", text, 0, kMaxQuantity));
             }},
            {"--from", "PLAN",
             "start from this plan of the same graph or one like it: few ops move",
             [this](std::string_view text) { from = text; }},
            {"-o, --output", "FILE", "write the plan there",
             [this](std::string_view text) { output = text; }},
            {"--json", "", "print the summary as JSON", [this](std::string_view) { json = true; }},
            {"-h, --help", "", "this text", [this](std::string_view) { help = true; }},
        });
  }

  static std::string names() {
    std::string names;
    for (const std::string_view name : algorithm_names()) {
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    return names;
  }
};

}  // namespace

int plan(const std::vector<std::string>& words, Console& console) {
  PlanOptions options;
  const auto table = options.table();
  const auto files = parse_options(words, table);
  if (options.help) {
    console.out
        << "usage: pardnn plan GRAPH --machine FILE | --devices N --memory SIZE [...]\n\n"
           "Finds a device for every op and an order for every device, so that no device\n"
           "ever holds more than its memory and the step is short. Ctrl-C ends the search\n"
           "with the best plan so far. Exit status 1: no plan that fits was found.\n\n"
        << describe_options(table)
        << "\nexample: pardnn plan step.pdg --devices 4 --memory 16GiB --budget 2s -o plan.json\n";
    return kDone;
  }
  if (files.size() != 1) {
    throw UsageError("found " + std::to_string(files.size()) + " graphs, expected one");
  }
  const auto graph = options.rules.apply(options.reader.read(files.front()));
  const Problem problem(graph, options.machine.machine(*graph), options.rules.rules);
  std::optional<OldPlan> old;
  if (!options.from.empty()) {
    if (options.algorithm != "auto") {
      throw UsageError("found --from with --algorithm " + options.algorithm + ", expected auto");
    }
    old = read_old_plan(read_file(options.from), options.from, problem);
  }
  const Interrupt interrupt;
  options.run.stop = interrupt.flag();
  if (console.err_is_terminal) {
    options.run.progress = [&](std::string_view what) {
      console.err << "\r\033[K" << what << std::flush;
    };
  }
  const Plan plan = old ? plan_from(problem, *old, options.run)
                        : make_plan(problem, options.algorithm, options.run);
  const auto moves = old ? std::optional(moves_from(problem, *old, plan)) : std::nullopt;
  const auto end_progress = [&] {
    if (console.err_is_terminal) console.err << "\r\033[K" << std::flush;
  };
  end_progress();
  if (!options.output.empty()) {
    write_file_atomically(options.output, write_plan(problem, plan));
  }
  if (!options.json) {
    console.out << summary_text(problem, plan);
    if (moves) console.out << "\nfrom " << options.from << ": " << moves_text(*moves) << "\n";
    console.out << std::flush;
  }
  const auto explanation = explain(problem, plan, options.algorithm, options.run);
  end_progress();
  if (options.json) console.out << summary_json(problem, plan, explanation, moves);
  console.err << explanation_text(problem, plan, explanation);
  return plan.score.fits() ? kDone : kNo;
}

}  // namespace pardnn::cli
