// A plan made from one made before: sound, no worse where nothing changed, and then nothing moves.
#include "pardnn/partition/warm_start.h"

#include <array>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/io/old_plan_json.h"
#include "pardnn/io/plan_json.h"

#include "tests/properties/machines.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::size_t kDevices = 3;
constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

Rules rules_of(std::uint64_t seed) {
  constexpr std::array<Rules, 4> kRules{
      {{}, {.dispatch = Dispatch::kFifo}, {.contention = false}, {.any_timing = true}}};
  return kRules[seed % kRules.size()];
}

Findings try_again(std::size_t number) {
  const Family& family = families()[number];
  const std::uint64_t seed = number;
  if (family.name == "kinds") return Findings("");
  Findings findings(std::string(family.name) + ", seed " + std::to_string(seed));
  const Rules rules = rules_of(seed);
  const Run run = short_run(seed);
  Run longer = run;  // what is far from the best would rightly be moved
  longer.steps = 40;
  const auto graph = family.make(50, seed);
  const Problem plenty(graph, even_machine(kDevices, kPlenty));
  const std::int64_t share = one_device_bytes(plenty) / std::int64_t{kDevices} + 1;
  const Problem before(graph, even_machine(kDevices, 2 * share), rules);
  const Plan old_plan = make_plan(before, "auto", longer);
  const std::string text = write_plan(before, old_plan);

  const OldPlan same = read_old_plan(text, "same", before);
  const Plan again = plan_from(before, same, run);
  expect_sound(findings, before, again);
  findings.expect(again.score <= old_plan.score, "it is worse than the plan it is made from");
  findings.expect(!old_plan.score.fits() || moves_from(before, same, again).moved == 0,
                  "ops moved though nothing changed");

  for (const auto& [devices, bytes] : {std::pair(kDevices - 1, 3 * share), {kDevices, share}}) {
    const Problem now(graph, even_machine(devices, bytes), rules);
    const OldPlan old = read_old_plan(text, "old", now);
    const Plan plan = plan_from(now, old, run);
    expect_sound(findings, now, plan);
    findings.expect(write_plan(now, plan) == write_plan(now, plan_from(now, old, run)),
                    "it is another plan the second time");
  }
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_warm_starts)

BOOST_AUTO_TEST_CASE(plans_made_from_plans) {
  run_trials("warm starts", families().size(), try_again);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
