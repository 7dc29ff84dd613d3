// `pardnn compare`: every algorithm on one or many graphs, side by side.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "pardnn/base/integers.h"
#include "pardnn/base/quantity.h"
#include "pardnn/cli/commands.h"
#include "pardnn/cli/graph_files.h"
#include "pardnn/cli/interrupt.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/starts.h"
#include "pardnn/report/summary.h"
#include "pardnn/report/text_table.h"

namespace pardnn::cli {

namespace {

struct CompareOptions {
  ReaderOptions reader;
  MachineOptions machine;
  RuleOptions rules;
  std::vector<std::int64_t> limits;  // ascending; empty: what the machine says
  std::vector<std::string> algorithms;
  Run run;
  std::string format = "text";
  bool help = false;

  std::vector<Option> table() {
    return joined(joined(joined(machine.table(), rules.table()), reader.table()),
                  {
                      {"--limits", "SIZE,SIZE,...",
                       "instead of --memory: plan once with each of these for every device",
                       [this](std::string_view text) {
                         limits = sizes_of("--limits", text);
                         std::ranges::sort(limits);
                         limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
                       }},
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

// The machine under each limit, the tightest first.
std::vector<Machine> machines_of(const CompareOptions& options, const Graph& graph) {
  MachineOptions stated = options.machine;
  if (options.limits.empty()) return {stated.machine(graph)};
  if (!stated.memory_bytes.empty()) {
    throw UsageError("found --limits together with --memory, expected either");
  }
  if (stated.machine_path.empty()) {
    if (!stated.devices) {
      throw UsageError("found --limits without --devices or --machine, expected one of them");
    }
    stated.memory_bytes = {options.limits.front()};
  }
  std::vector<Machine> machines(options.limits.size(), stated.machine(graph));
  for (std::size_t n = 0; n < machines.size(); ++n) {
    for (Device& device : machines[n].devices) device.capacity_bytes = options.limits[n];
  }
  return machines;
}

struct Result {
  std::string graph, algorithm;
  std::vector<std::int64_t> capacity_bytes, peak_bytes;  // of each device
  Plan plan;
  std::int64_t most_peak_bytes = 0, utilisation_per_mille = 0;
  double cpu_seconds = 0;
};

// CPU seconds of the whole process: the machine may be shared.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

Result plan_one(const std::string& file, const Problem& problem, const std::string& algorithm,
                const Run& run, Ladder& ladder) {
  Result result;
  result.graph = file;
  result.algorithm = algorithm;
  const double before = cpu_seconds();
  result.plan = ladder.plan(problem, algorithm, run);
  result.cpu_seconds = cpu_seconds() - before;
  for (const DeviceId device : problem.devices()) {
    result.capacity_bytes.push_back(problem.capacity_bytes(device));
    result.peak_bytes.push_back(result.plan.prediction.peaks[device].bytes);
  }
  result.most_peak_bytes = std::ranges::max(result.peak_bytes);
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

// Each size once: "16 GiB", or "6 GiB/16 GiB" where devices differ.
template <class Text>
std::string memory_text(const Result& result, Text text_of) {
  std::vector<std::int64_t> shown;
  std::string text;
  for (const std::int64_t bytes : result.capacity_bytes) {
    if (std::ranges::find(shown, bytes) != shown.end()) continue;
    shown.push_back(bytes);
    text += (text.empty() ? "" : "/") + text_of(bytes);
  }
  return text;
}

std::string as_table(const std::vector<Result>& results, bool is_csv) {
  TextTable table(is_csv ? std::vector<std::string>{"graph", "memory_bytes", "algorithm", "fits",
                                                    "step_ns", "bound_ns", "gap", "most_peak_bytes",
                                                    "bytes_sent", "utilisation_per_mille",
                                                    "cpu_seconds"}
                         : std::vector<std::string>{"graph", "memory", "algorithm", "fits", "step",
                                                    "gap", "most peak", "sent", "busy", "cpu s"});
  for (const Result& result : results) {
    const Score& score = result.plan.score;
    if (is_csv) {
      table.add({result.graph,
                 memory_text(result, [](std::int64_t bytes) { return std::to_string(bytes); }),
                 result.algorithm, score.fits() ? "yes" : "no", std::to_string(score.step_ns),
                 std::to_string(result.plan.bound_ns), decimal(gap(result.plan)),
                 std::to_string(result.most_peak_bytes), std::to_string(score.bytes_sent),
                 std::to_string(result.utilisation_per_mille), decimal(result.cpu_seconds)});
    } else {
      table.add({result.graph, memory_text(result, format_bytes), result.algorithm,
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
                    {"memory_bytes", boost::json::value_from(result.capacity_bytes)},
                    {"algorithm", result.algorithm},
                    {"found_by", result.plan.algorithm},
                    {"fits", result.plan.score.fits()},
                    {"overflow_bytes", result.plan.score.overflow_bytes},
                    {"step_ns", result.plan.score.step_ns},
                    {"bound_ns", result.plan.bound_ns},
                    {"most_peak_bytes", result.most_peak_bytes},
                    {"peak_bytes", boost::json::value_from(result.peak_bytes)},
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
    console.out
        << "usage: pardnn compare GRAPH... --devices N --memory SIZE | --limits SIZE,... [...]\n\n"
           "Plans each graph with each algorithm under one model. `gap` is the step time\n"
           "divided by a bound that no plan can beat. With --limits each graph is planned\n"
           "under each limit, the tightest first, and auto knows the plans of the tighter\n"
           "ones: it is never worse under a looser one. Exit status 1: some algorithm found\n"
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
    const auto graph = options.rules.apply(options.reader.read(file));
    Ladder ladder;
    for (Machine& machine : machines_of(options, *graph)) {
      const Problem problem(graph, std::move(machine), options.rules.rules);
      for (const std::string& algorithm : options.algorithms) {
        if (console.err_is_terminal) {
          console.err << "\r\033[K" << file << " " << algorithm << std::flush;
        }
        results.push_back(plan_one(file, problem, algorithm, options.run, ladder));
        all_fit = all_fit && results.back().plan.score.fits();
      }
      ladder.loosen();
    }
  }
  if (console.err_is_terminal) console.err << "\r\033[K" << std::flush;
  console.out << (options.format == "json" ? as_json(results)
                                           : as_table(results, options.format == "csv"));
  return all_fit ? kDone : kNo;
}

}  // namespace pardnn::cli
