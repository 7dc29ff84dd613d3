#include "tests/properties/trials.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/plan/bound.h"
#include "pardnn/check/check.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"
#include "pardnn/io/plan_json.h"
#include "pardnn/partition/rows.h"
#include "pardnn/report/overflow.h"
#include "pardnn/sim/simulate.h"

namespace pardnn::properties {

namespace {

constexpr std::size_t kShown = 20;

template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[random.below(static_cast<std::uint32_t>(left))]);
  }
}

// The same records in another order; the first line stays.
std::string shuffled_lines(const std::string& text, Random& random) {
  std::vector<std::string> lines;
  const std::size_t body = text.find('\n') + 1;
  for (std::size_t at = body; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  shuffle(lines, random);
  std::string result = text.substr(0, body);
  for (const std::string& line : lines) result += line;
  return result;
}

// What the checker does too, by the units of the problem instead of the groups of the graph.
void expect_whole_units(Findings& findings, const Problem& problem, const Plan& plan) {
  const Graph& graph = problem.graph();
  for (const UnitId unit : problem.units()) {
    std::optional<DeviceId> together;
    const auto join = [&](std::string_view key, std::optional<DeviceId> device) {
      if (!together) together = device;
      findings.expect(device && device == together, std::string(key) + " is not with its unit");
    };
    for (const OpId op : problem.ops(unit)) join(graph.key(op), plan.placement.ops[op]);
    for (const VariableId variable : problem.variables(unit)) {
      join(graph.key(variable), plan.placement.variables[variable]);
    }
    findings.expect(together && problem.is_allowed(unit, *together), "a unit is where it may not");
  }
}

std::vector<OpId> random_order(const Graph& graph, Random& random) {
  Table<OpId, std::size_t> waits(graph.ops().size(), 0);
  const auto for_each_reader = [&](OpId op, const auto& visit) {
    for (const TensorId output : graph.outputs(op)) {
      for (const OpId reader : graph.readers(output)) visit(reader);
    }
    for (const OpId reader : graph.control_readers(op)) visit(reader);
  };
  std::vector<OpId> open, order;
  for (const OpId op : graph.ops()) {
    for_each_reader(op, [&](OpId reader) { ++waits[reader]; });
  }
  for (const OpId op : graph.ops()) {
    if (waits[op] == 0) open.push_back(op);
  }
  while (!open.empty()) {
    const std::size_t pick = random.below(static_cast<std::uint32_t>(open.size()));
    const OpId op = open[pick];
    open[pick] = open.back();
    open.pop_back();
    if (!graph.is_every(op)) order.push_back(op);
    for_each_reader(op, [&](OpId reader) {
      if (--waits[reader] == 0) open.push_back(reader);
    });
  }
  return order;
}

}  // namespace

bool is_stress() { return std::getenv("PARDNN_STRESS") != nullptr; }

void run_trials(std::string_view what, std::size_t count, const Trial& trial,
                std::chrono::seconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::vector<std::string> broken;
  std::int64_t plans = 0;
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t number = next++; number < count; number = next++) {
      Findings found("trial " + std::to_string(number));
      try {
        found = trial(number);
      } catch (const std::exception& error) {
        found.expect(false, std::string("threw: ") + error.what());
      }
      const std::scoped_lock lock(guard);
      ++done;
      plans += found.plans();
      broken.insert(broken.end(), found.broken().begin(), found.broken().end());
      // There is enough to mend, or no more time.
      if (broken.size() >= kShown || Clock::now() - begin > limit) next = count;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned n = 1; n < std::max(1u, std::thread::hardware_concurrency()); ++n) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) thread.join();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  BOOST_TEST_MESSAGE(what << ": " << plans << " plans in " << done << " of " << count << " trials, "
                          << ms << " ms");
  if (broken.size() > kShown) broken.resize(kShown);
  for (const std::string& sentence : broken) BOOST_ERROR(std::string(what) + ": " + sentence);
  BOOST_TEST(plans > 0);
}

void expect_sound(Findings& findings, const Problem& problem, const Plan& plan) {
  findings.count_plan();
  for (const std::string& sentence : check(problem, plan, 3)) findings.expect(false, sentence);
  expect_whole_units(findings, problem, plan);
  findings.expect(plan.bound_ns <= plan.prediction.step_ns, "the bound is above the step");
  findings.expect(plan.bound_ns == lower_bound_ns(problem), "the bound is not the problem's");
  bool fits = true;
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = plan.prediction.peaks[device];
    const std::int64_t bytes = problem.rules().any_timing ? peak.any_timing_bytes : peak.bytes;
    fits = fits && bytes <= problem.limit_bytes(device);
    findings.expect(
        problem.rules().dispatch == Dispatch::kFifo || peak.bytes <= peak.any_timing_bytes,
        "a peak is above the any-timing peak");
  }
  findings.expect(plan.score.fits() == fits, "it does not say rightly whether it fits");
  findings.expect(overflow_text(problem, plan).empty() == fits, "it does not say why");
}

Run short_run(std::uint64_t seed) {
  Run run;
  run.seed = seed;
  run.steps = 4;
  return run;
}

std::optional<Plan> sound_plan(Findings& findings, const Problem& problem, std::string_view row,
                               std::uint64_t seed) {
  try {
    Plan plan = make_plan(problem, row, short_run(seed));
    Findings own{std::string(row)};
    expect_sound(own, problem, plan);
    findings.count_plan();
    for (const std::string& sentence : own.broken()) findings.expect(false, sentence);
    return plan;
  } catch (const std::exception& error) {
    findings.expect(false, std::string(row) + " threw: " + error.what());
    return std::nullopt;
  }
}

void expect_sound_rows(Findings& findings, const Problem& problem, std::uint64_t seed) {
  const auto best = sound_plan(findings, problem, "auto", seed);
  for (const Row& row : rows()) {
    const auto plan = sound_plan(findings, problem, row.name, seed);
    if (!best || !plan) continue;
    findings.expect(best->score <= plan->score, "auto is worse than " + std::string(row.name));
  }
}

void expect_repeatable(Findings& findings, const Problem& problem, std::string_view row,
                       std::uint64_t seed) {
  const Run run = short_run(seed);
  const std::string once = write_plan(problem, make_plan(problem, row, run));
  const auto expect_same = [&](const Problem& other, const char* sentence) {
    findings.count_plan();
    findings.expect(write_plan(other, make_plan(other, row, run)) == once,
                    std::string(row) + sentence);
  };
  expect_same(problem, " gives another plan the second time");
  Random random(seed);
  const std::string text = shuffled_lines(write_pdg(problem.graph()), random);
  expect_same(Problem(read_pdg(text, "shuffled"), problem.machine(), problem.rules()),
              " gives another plan when lines are in another order");
}

std::optional<Plan> random_plan(Findings& findings, const Problem& problem, std::uint64_t seed) {
  Random random(seed);
  UnitPlacement units(problem.units().size());
  for (const UnitId unit : problem.units()) {
    do {
      units[unit] = DeviceId{random.below(static_cast<std::uint32_t>(problem.device_count()))};
    } while (!problem.is_allowed(unit, units[unit]));
  }
  Plan plan;
  plan.placement = expand(problem, units);
  plan.sequences = sequences_of(problem, plan.placement, random_order(problem.graph(), random));
  auto prediction = predict(problem, plan.placement, plan.sequences);
  findings.expect(prediction.has_value(), "the simulator sees a cycle where there is none");
  if (!prediction) return std::nullopt;
  plan.prediction = std::move(*prediction);
  plan.score = score_of(problem, plan.prediction);
  plan.algorithm = "random";
  plan.bound_ns = lower_bound_ns(problem);
  return plan;
}

void expect_sound_random_plan(Findings& findings, const Problem& problem, std::uint64_t seed) {
  if (const auto plan = random_plan(findings, problem, seed))
    expect_sound(findings, problem, *plan);
}

std::int64_t one_device_bytes(const Problem& problem) {
  const Plan plan = make_plan(problem, "one-device", {});
  std::int64_t bytes = 0;
  for (const DeviceId device : problem.devices()) {
    bytes += plan.prediction.peaks[device].bytes - problem.reserve_bytes(device);
  }
  return bytes;
}

}  // namespace pardnn::properties
