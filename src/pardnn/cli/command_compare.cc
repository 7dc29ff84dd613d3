// `pardnn compare`: every algorithm on one or many graphs, side by side.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <ostream>
#include <string>

#include <boost/json.hpp>

#include "pardnn/base/integers.h"
#include "pardnn/base/quantity.h"
#include "pardnn/cli/commands.h"
#include "pardnn/cli/interrupt.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/partition/rows.h"
#include "pardnn/report/summary.h"
#include "pardnn/report/text_table.h"

namespace pardnn::cli {

namespace {

struct CompareOptions {
  MachineOptions machine;
  RuleOptions rules;
  std::vector<std::string> algorithms;
  Run run;
  std::string format = "text";
  bool help = false;

  std::vector<Option> table() {
    return joined(joined(machine.table(), rules.table()),
                  {
                      {"--algorithms", "A,B,...", "which (all)",
                       [this](std::string_view text) { set_algorithms(text); }},
                      {"--budget", "TIME", "of each plan",
                       [this](std::string_view text) {
                         run.budget = std::chrono::nanoseconds(ns_of("--budget", text));
                       }},
                      {"--steps", "N", "of each search",
                       [this](std::string_view text) {
                         run.steps = integer_of("--steps", text, 0, kMaxQuantity);
                       }},
                      {"--format", "text|json|csv", "of the answer (text)",
                       [this](std::string_view text) {
                         if (text != "text" && text != "json" && text != "csv") {
                           reject("--format", text, "text, json or csv");
                         }
                         format = text;
                       }},
                      {"-h, --help", "", "this text", [this](std::string_view) { help = true; }},
                  });
  }

  void set_algorithms(std::string_view text) {
    algorithms.clear();
    while (true) {
      const std::size_t comma = text.find(',');
      const std::string_view name = text.substr(0, comma);
      if (!is_algorithm(name)) {
        std::string names;
        for (const std::string_view one : algorithm_names()) {
          names += (names.empty() ? "" : ", ") + std::string(one);
        }
        reject("--algorithms", name, "names out of " + names);
      }
      algorithms.emplace_back(name);
      if (comma == std::string_view::npos) return;
      text = text.substr(comma + 1);
    }
  }
};

struct Result {
  std::string graph, algorithm;
  Plan plan;
  std::int64_t most_peak_bytes = 0, utilisation_per_mille = 0;
  double cpu_seconds = 0;
};

// CPU seconds of the whole process: the machine may be shared.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

Result plan_one(const std::string& file, const Problem& problem, const std::string& algorithm,
                const Run& run) {
  Result result;
  result.graph = file;
  result.algorithm = algorithm;
  const double before = cpu_seconds();
  result.plan = make_plan(problem, algorithm, run);
  result.cpu_seconds = cpu_seconds() - before;
  for (const Peak& peak : result.plan.prediction.peaks) {
    result.most_peak_bytes = std::max(result.most_peak_bytes, peak.bytes);
  }
  result.utilisation_per_mille = utilisation_per_mille(problem, result.plan);
  return result;
}

std::string decimal(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 3);
}

double gap(const Plan& plan) {
  return plan.bound_ns == 0
             ? 0
             : static_cast<double>(plan.score.step_ns) / static_cast<double>(plan.bound_ns);
}

std::string as_table(const std::vector<Result>& results, bool is_csv) {
  TextTable table(is_csv
                      ? std::vector<std::string>{"graph", "algorithm", "fits", "step_ns",
                                                 "bound_ns", "gap", "most_peak_bytes", "bytes_sent",
                                                 "utilisation_per_mille", "cpu_seconds"}
                      : std::vector<std::string>{"graph", "algorithm", "fits", "step", "gap",
                                                 "most peak", "sent", "busy", "cpu s"});
  for (const Result& result : results) {
    const Score& score = result.plan.score;
    if (is_csv) {
      table.add({result.graph, result.algorithm, score.fits() ? "yes" : "no",
                 std::to_string(score.step_ns), std::to_string(result.plan.bound_ns),
                 decimal(gap(result.plan)), std::to_string(result.most_peak_bytes),
                 std::to_string(score.bytes_sent), std::to_string(result.utilisation_per_mille),
                 decimal(result.cpu_seconds)});
    } else {
      table.add({result.graph, result.algorithm,
                 score.fits() ? "yes" : "over by " + format_bytes(score.overflow_bytes),
                 format_ns(score.step_ns), decimal(gap(result.plan)),
                 format_bytes(result.most_peak_bytes), format_bytes(score.bytes_sent),
                 std::to_string(result.utilisation_per_mille / 10) + " %",
                 decimal(result.cpu_seconds)});
    }
  }
  return is_csv ? table.csv() : table.text();
}

std::string as_json(const std::vector<Result>& results) {
  boost::json::array rows;
  for (const Result& result : results) {
    rows.push_back({{"graph", result.graph},
                    {"algorithm", result.algorithm},
                    {"found_by", result.plan.algorithm},
                    {"fits", result.plan.score.fits()},
                    {"overflow_bytes", result.plan.score.overflow_bytes},
                    {"step_ns", result.plan.score.step_ns},
                    {"bound_ns", result.plan.bound_ns},
                    {"most_peak_bytes", result.most_peak_bytes},
                    {"bytes_sent", result.plan.score.bytes_sent},
                    {"utilisation_per_mille", result.utilisation_per_mille},
                    {"cpu_seconds", result.cpu_seconds}});
  }
  return boost::json::serialize(rows) + "\n";
}

}  // namespace

int compare(const std::vector<std::string>& words, Console& console) {
  CompareOptions options;
  const auto table = options.table();
  const auto files = parse_options(words, table);
  if (options.help) {
    console.out << "usage: pardnn compare GRAPH... --devices N --memory SIZE [...]\n\n"
                   "Plans each graph with each algorithm under one model. `gap` is the step time\n"
                   "divided by a bound that no plan can beat. Exit status 1: some algorithm found\n"
                   "no plan that fits.\n\n"
                << describe_options(table)
                << "\nexample: pardnn compare step.pdg --devices 4 --memory 8GiB --algorithms "
                   "etf,pardnn\n";
    return kDone;
  }
  if (files.empty()) throw UsageError("found no graph, expected at least one");
  if (options.algorithms.empty()) {
    for (const std::string_view name : algorithm_names()) options.algorithms.emplace_back(name);
  }
  const Interrupt interrupt;
  options.run.stop = interrupt.flag();
  std::vector<Result> results;
  bool all_fit = true;
  for (const std::string& file : files) {
    const auto graph = options.rules.apply(read_pdg_file(file));
    const Problem problem(graph, options.machine.machine(*graph), options.rules.rules);
    for (const std::string& algorithm : options.algorithms) {
      if (console.err_is_terminal) {
        console.err << "\r\033[K" << file << " " << algorithm << std::flush;
      }
      results.push_back(plan_one(file, problem, algorithm, options.run));
      all_fit = all_fit && results.back().plan.score.fits();
    }
  }
  if (console.err_is_terminal) console.err << "\r\033[K" << std::flush;
  console.out << (options.format == "json" ? as_json(results)
                                           : as_table(results, options.format == "csv"));
  return all_fit ? kDone : kNo;
}

}  // namespace pardnn::cli
