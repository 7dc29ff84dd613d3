// A pass of windows never makes a step longer, and knows to the nanosecond how long it is, as long
// as no transfer waits for another.
#include "pardnn/partition/windows.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/orders.h"

#include "tests/properties/machines.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::size_t kTrials = 600;
constexpr int kPasses = 12;

Knobs some_knobs(Random& random) {
  Knobs knobs;
  knobs.width = 1 + random.below(40);
  knobs.offset = random.below(static_cast<std::uint32_t>(knobs.width));
  knobs.delay_quarters = random.below(3) * 4;
  knobs.reach_per_mille = random.below(3) * 500;
  knobs.noise_per_mille = random.below(2) * 200;
  knobs.looks_ahead = random.below(2) == 0;
  knobs.first = random.below(3);
  return knobs;
}

Findings try_passes(std::size_t number) {
  const Family& family = families()[number % families().size()];
  Random random(number);
  const std::size_t devices = 2 + random.below(7);
  Findings findings(std::string(family.name) + ", trial " + std::to_string(number));
  if (family.name == "kinds") return findings;
  const Problem problem(family.make(15 + random.below(120), number),
                        even_machine(devices, std::int64_t{1} << 40), {.contention = false});
  const Times times(problem);
  const Proposal start = etf(problem, {});
  const Arcs arcs(problem);
  Windows windows(problem, arcs);
  pardnn::Trial trial(problem);
  Lineup lineup;
  lineup.order = start.order;
  lineup.placement = start.placement;
  windows.walk().time(lineup);
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::int64_t before_ns = lineup.step_ns;
    const bool mirrored = random.below(2) == 0;
    if (mirrored) windows.walk().mirror(lineup);
    windows.pass(lineup, some_knobs(random), random);
    if (mirrored) windows.walk().mirror(lineup);
    findings.expect(lineup.step_ns <= before_ns, "a pass made the step longer");
    const std::optional<Score> score = trial.score({lineup.placement, lineup.order});
    findings.expect(score.has_value(), "a pass left no plan");
    if (score) findings.expect(score->step_ns == lineup.step_ns, "the lineup's step is another");
  }
  findings.count_plan();
  return findings;
}

}  // namespace

BOOST_AUTO_TEST_CASE(passes_of_windows_are_exact_without_contention) {
  run_trials("windows", kTrials, try_passes);
}

}  // namespace pardnn::properties
