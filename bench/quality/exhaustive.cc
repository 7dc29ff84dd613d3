// pardnn_exhaustive: `auto` against the best of all plans of small problems, contention and memory
// included.
//
// usage: pardnn_exhaustive PROBLEMS STEPS
// Every placement and every order of up to 7 ops on 2 or 3 devices goes through the simulator, so
// what is best is known under every rule of the model. Half of the graphs are training steps, half
// are tangles of the property suite, in which all rules meet. One JSON line for each kind of
// problem. Exit status 1: plans farther from the best than the project promises, or a plan missed.
#include "tests/properties/exhaustive.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/plan/memory_bound.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/partition/rows.h"

#include "tests/properties/machines.h"
#include "tests/properties/tangle.h"

namespace {

using namespace pardnn;

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
constexpr double kMean = 1.01, kWorst = 1.05;

// Two layers, a loss, gradients of weights and of the value between, two updates: 7 ops. Times are
// in ns, and a byte takes about as long to be sent as an op takes for it.
std::shared_ptr<const Graph> training_step(Random& random) {
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return std::to_string(random.between(low, high));
  };
  const std::string between = number(5, 40);
  std::string text = "pdg 1\n";
  text += "var w1 " + number(10, 60) + " @a\nvar w2 " + number(10, 60) + " @b\n";
  text += "op f1 F " + number(5, 60) + " < w1 > " + between + " @a\n";
  text += "op f2 F " + number(5, 60) + " < w2 f1 > " + number(5, 40) + " @b\n";
  text += "op b2 B " + number(5, 60) + " < f2 f1 w2 > " + between + " @b\n";
  text += "op g2 B " + number(5, 60) + " < f2 f1 > " + number(10, 60) + "\n";
  text += "op g1 B " + number(5, 60) + " < b2 > " + number(10, 60) + "\n";
  text += "op u2 U " + number(5, 30) + " < !w2 g2 ^b2 @b\n";
  text += "op u1 U " + number(5, 30) + " < !w1 g1 @a\n";
  return read_pdg(text, "step");
}

std::size_t ordinary_ops(const Graph& graph) {
  return static_cast<std::size_t>(
      std::ranges::count_if(graph.ops(), [&](OpId op) { return !graph.is_every(op); }));
}

struct Kind {
  bool contention = false;
  bool is_tight = false;  // memory is
  std::size_t problems = 0, fitting = 0, found = 0, optimal = 0;
  double sum_of_logs = 0, worst = 1;

  double mean() const {
    return found == 0 ? 1 : std::exp(sum_of_logs / static_cast<double>(found));
  }
  bool is_good() const { return found == fitting && mean() <= kMean && worst <= kWorst; }
};

void compare(Kind& kind, std::size_t number, std::int64_t steps) {
  Random random(number);
  const auto devices = static_cast<std::size_t>(random.between(2, 3));
  const auto graph =
      random.below(2) == 0 ? training_step(random) : properties::make_tangle(7, number);
  if (ordinary_ops(*graph) > 7) return;
  Rules rules;
  rules.contention = kind.contention;
  const std::uint32_t rule = random.below(8);
  if (rule == 0) rules.dispatch = Dispatch::kFifo;
  if (rule == 1) rules.any_timing = true;
  if (rule == 2) rules.given_order = graph->has_given_order();
  const auto problem_of = [&](std::int64_t capacity_bytes) {
    return Problem(graph, properties::uneven_machine(devices, capacity_bytes, 1, true), rules);
  };
  std::int64_t capacity_bytes = kPlenty;
  if (kind.is_tight) {
    const Problem roomy = problem_of(kPlenty);
    std::int64_t together = memory_bound(roomy).bytes;
    for (const Device& device : roomy.machine().devices) together -= device.reserve_bytes;
    capacity_bytes =
        together * random.between(1'000, 2'500) / 1'000 / static_cast<std::int64_t>(devices);
  }
  const Problem problem = problem_of(capacity_bytes);
  const auto best = properties::best_of_all(problem);
  if (!best) return;
  ++kind.problems;
  if (!best->score.fits()) return;
  ++kind.fitting;
  Run run;
  run.steps = steps;
  const Plan plan = make_plan(problem, "auto", run);
  if (!score_of(problem, plan.prediction).fits()) return;
  ++kind.found;
  const double ratio = static_cast<double>(plan.prediction.step_ns) /
                       static_cast<double>(std::max<std::int64_t>(best->score.step_ns, 1));
  kind.optimal += plan.prediction.step_ns == best->score.step_ns;
  kind.sum_of_logs += std::log(ratio);
  kind.worst = std::max(kind.worst, ratio);
}

int run(std::size_t problems, std::int64_t steps) {
  bool is_good = true;
  for (const bool is_tight : {false, true}) {
    for (const bool contention : {false, true}) {
      Kind kind;
      kind.contention = contention;
      kind.is_tight = is_tight;
      for (std::size_t number = 0; number < problems; ++number) compare(kind, number, steps);
      std::printf(
          "{\"contention\": %s, \"memory\": \"%s\", \"problems\": %zu, \"fitting\": %zu, "
          "\"found\": %zu, \"optimal\": %zu, \"mean\": %.4f, \"worst\": %.4f}\n",
          contention ? "true" : "false", is_tight ? "tight" : "unlimited", kind.problems,
          kind.fitting, kind.found, kind.optimal, kind.mean(), kind.worst);
      std::fflush(stdout);
      is_good = is_good && kind.is_good();
    }
  }
  return is_good ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: pardnn_exhaustive PROBLEMS STEPS\n");
    return 2;
  }
  try {
    return run(std::strtoul(words[1], nullptr, 10), std::strtol(words[2], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pardnn_exhaustive: %s\n", error.what());
    return 2;
  }
}
