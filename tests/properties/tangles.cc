// Random plans and all rows on tangles: few of them in every test run, a hundred thousand plans
// when PARDNN_STRESS is set, or as many as PARDNN_STRESS_SECONDS allow. A finding names the trial;
// PARDNN_TRIAL=N runs that one alone, PARDNN_FIRST=N begins there.
#include <chrono>
#include <cstdlib>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/graph/generate.h"

#include "tests/properties/machines.h"
#include "tests/properties/tangle.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
constexpr std::uint64_t kRandomPlans = 6;  // beside five of rows and auto

// From the environment, else `otherwise`.
std::size_t number_of(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// For each of the two halves of a long run.
std::chrono::seconds time_limit() {
  return std::chrono::seconds(number_of("PARDNN_STRESS_SECONDS", 86'400) / 2);
}

Rules random_rules(const Graph& graph, Random& random) {
  Rules rules;
  if (random.below(4) == 0) rules.dispatch = Dispatch::kFifo;
  rules.contention = random.below(4) != 0;
  rules.margin_per_mille = random.below(3) == 0 ? random.between(1, 500) : 0;
  if (rules.dispatch == Dispatch::kSequence) {
    rules.any_timing = random.below(3) == 0;
    rules.given_order = graph.has_given_order() && random.below(2) == 0;
  }
  return rules;
}

// A tangle on a machine of its own, with plenty of memory or with about as much as it needs.
Findings try_tangle(std::size_t number) {
  Random random(number);
  const std::size_t most = random.below(10) == 0 ? 150 : 30;
  const auto graph = make_tangle(
      static_cast<std::size_t>(random.between(3, static_cast<std::int64_t>(most))), number);
  const auto devices = static_cast<std::size_t>(random.between(2, random.below(8) == 0 ? 17 : 4));
  const std::int64_t granularity = random.below(2) == 0 ? 1 : random.between(2, 40);
  const bool is_even = graph->kinds().size() == 1 && random.below(3) == 0;
  const auto machine = [&](std::int64_t capacity) {
    if (!is_even) return uneven_machine(devices, capacity, granularity, true);
    return Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(devices, capacity),
                             .bytes_per_second = random.between(1, 4) * 500'000'000,
                             .overhead_ns = random.between(0, 5),
                             .latency_ns = random.between(0, 5),
                             .granularity_bytes = granularity,
                             .reserve_bytes = random.between(0, capacity / 10)});
  };
  std::int64_t capacity = kPlenty;
  if (random.below(2) == 0) {
    const std::int64_t bytes = one_device_bytes(Problem(graph, machine(kPlenty)));
    const auto share = bytes * 1'000 / static_cast<std::int64_t>(devices);
    capacity = share / 1'000 * random.between(500, 2'000) / 1'000 + 1;
  }
  const Rules rules = random_rules(*graph, random);
  const Problem problem(graph, machine(capacity), rules);
  Findings findings("tangle " + std::to_string(number));
  for (std::uint64_t n = 0; n < kRandomPlans; ++n) {
    expect_sound_random_plan(findings, problem, random.next());
  }
  expect_sound_rows(findings, problem, number);
  if (number % 10 == 0) expect_repeatable(findings, problem, "auto", number);
  return findings;
}

// A graph of a family of random size, now and then a large one.
Findings try_family(std::size_t number) {
  Random random(number);
  const Family& family = families()[random.below(static_cast<std::uint32_t>(families().size()))];
  const auto graph = family.make(random.below(20) == 0 ? 2'000 : 10 + random.below(150), number);
  const auto devices = static_cast<std::size_t>(random.between(2, 16));
  const Problem roomy(graph, uneven_machine(devices, kPlenty, 256));
  std::int64_t capacity = kPlenty;
  if (random.below(3) != 0) {
    capacity = one_device_bytes(roomy) / static_cast<std::int64_t>(devices) / 1'000 *
                   random.between(500, 2'500) +
               1'000;
  }
  const Problem problem(graph, uneven_machine(devices, capacity, 256),
                        random_rules(*graph, random));
  Findings findings(std::string(family.name) + " " + std::to_string(number));
  for (int n = 0; n < 3; ++n) expect_sound_random_plan(findings, problem, random.next());
  expect_sound_rows(findings, problem, number);
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_tangles)

BOOST_AUTO_TEST_CASE(planner_simulator_and_checker_agree) {
  const std::size_t only = number_of("PARDNN_TRIAL", 0);
  const std::size_t first = only != 0 ? only : number_of("PARDNN_FIRST", 1);
  const std::size_t count = only != 0 ? 1 : is_stress() ? 8'500 : 500;
  run_trials(
      "tangles", count, [&](std::size_t number) { return try_tangle(first + number); },
      time_limit());
}

BOOST_AUTO_TEST_CASE(planner_simulator_and_checker_agree_on_families) {
  if (!is_stress()) return;  // the grid of families.cc does it
  const std::size_t first = number_of("PARDNN_FIRST", 1);
  run_trials(
      "families", 1'000, [&](std::size_t number) { return try_family(first + number); },
      time_limit());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
