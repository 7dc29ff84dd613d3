// The published method as a whole; what its authors' programs were seen to get wrong.
#include "pardnn/partition/pardnn.h"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/error.h"
#include "pardnn/base/random.h"
#include "pardnn/graph/generate.h"
#include "pardnn/io/pdg_writer.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(pardnn_row_)

Machine devices(std::size_t count) {
  return StoryMachine{.devices = count, .capacity_bytes = std::int64_t{1} << 60}.build();
}

// Plans on so many devices; the plan is right by the checker, and its step is what is expected.
void expect_step(const std::string& graph, std::size_t count, std::int64_t step_ns) {
  const PlannerStory story(graph, devices(count));
  const Plan plan = story.plan("pardnn");
  BOOST_TEST(faults(story.problem, plan) == "");
  BOOST_TEST(plan.prediction.step_ns == step_ns);
}

// a - b - c stays together: 3 + 3 + 3
BOOST_AUTO_TEST_CASE(a_chain_on_more_devices_than_it_has_paths) {
  const std::string chain = "op a T 3 > 1\nop b T 3 < a > 1\nop c T 3 < b\n";
  for (const std::size_t count : {1, 2, 3, 8}) expect_step(chain, count, 9);
}

//    b(9)
//  /      \.         one branch is sent away and d goes with it: 1 + 1 + 9 + 1
// a(1)     d(1)
//  \      /
//    c(9)
BOOST_AUTO_TEST_CASE(a_diamond) {
  const std::string diamond = "op a T 1 > 1\nop b T 9 < a > 1\nop c T 9 < a > 1\nop d T 1 < b c\n";
  expect_step(diamond, 1, 20);
  expect_step(diamond, 2, 12);
  expect_step(diamond, 8, 12);
}

BOOST_AUTO_TEST_CASE(a_wide_fan_out) {
  std::string graph = "op a T 1 > 1\n";
  for (int n = 0; n < 300; ++n) graph += "op b" + std::to_string(n) + " T 100 < a\n";
  const PlannerStory story(graph, devices(4));
  const Plan plan = story.plan("pardnn");
  BOOST_TEST(faults(story.problem, plan) == "");
  // 300 ops of 100 on four devices: at least 7500, and no device has more than 76 of them.
  BOOST_TEST(plan.prediction.step_ns >= 7500);
  BOOST_TEST(plan.prediction.step_ns <= 7602);
}

BOOST_AUTO_TEST_CASE(more_devices_than_ops_one_op_and_no_op) {
  expect_step("op a T 7\nop b T 7\n", 5, 7);
  expect_step("op a T 7\n", 3, 7);
  expect_step("", 3, 0);
  expect_step("var w 5\n", 3, 0);
  expect_step("op x Input 0 > 5 every=1\n", 3, 0);
}

BOOST_AUTO_TEST_CASE(an_isolated_op_and_two_components) {
  expect_step("op a T 5 > 1\nop b T 5 < a\nop lone T 10\n", 2, 10);
  expect_step("op a T 5 > 1\nop b T 5 < a\nop c T 5 > 1\nop d T 5 < c\n", 2, 10);
}

// Every op lasts at least 1 ns.
BOOST_AUTO_TEST_CASE(all_costs_zero) {
  expect_step("op a T 0 > 0\nop b T 0 < a > 0\nop c T 0 < b\n", 2, 3);
}

BOOST_AUTO_TEST_CASE(a_cycle_is_refused_and_named) {
  BOOST_CHECK_EXCEPTION(
      PlannerStory("op a T 1 < b > 1\nop b T 1 < a > 1\n"), Error, [](const Error& error) {
        const std::string text = error.what();
        return text.find("cycle") != std::string::npos && text.find("a") != std::string::npos;
      });
}

// 6 GB take 6 s at a byte a nanosecond, and 5 s of work more: far above 2^31 of either.
BOOST_AUTO_TEST_CASE(sizes_and_times_above_two_to_the_31) {
  const std::string graph =
      "op a T 5s > 6GB\n"
      "op b T 5s < a > 6GB\n"
      "op c T 5s < a > 6GB\n"
      "op d T 5s < b c\n";
  expect_step(graph, 2, 20'000'000'000);  // sending one branch away would take 12 s to save 5
}

BOOST_AUTO_TEST_CASE(ops_that_must_stay_on_the_cpu) {
  Machine machine = StoryMachine{.devices = 3, .kind = "gpu"}.build();
  machine.devices[DeviceId{0}].kind = "cpu";
  const PlannerStory story(
      "kind cpu gpu\n"
      "op a T 50,5 > 1\n"
      "op b T 5,- < a > 1\n"
      "op c T -,5 < b > 1\n"
      "op d T 50,5 < a > 1\n",
      machine);
  const Plan plan = story.plan("pardnn");
  BOOST_TEST(faults(story.problem, plan) == "");
  BOOST_TEST(index(*plan.placement.ops[story.op("b")]) == 0u);
  BOOST_TEST(index(*plan.placement.ops[story.op("c")]) != 0u);
  // a, sent to b on the cpu, sent to c: 5 + 1 + 5 + 1 + 5.
  BOOST_TEST(plan.prediction.step_ns == 17);
}

BOOST_AUTO_TEST_CASE(the_predicted_step_is_that_of_the_schedule) {
  for (const Family& family : families()) {
    if (family.name == "kinds") continue;  // asks for devices of other kinds
    const Problem problem(family.make(60, 3), devices(4));
    const Plan plan = make_plan(problem, "pardnn", {});
    BOOST_TEST_CONTEXT(family.name) { BOOST_TEST(faults(problem, plan) == ""); }
  }
}

BOOST_AUTO_TEST_CASE(the_order_of_the_lines_changes_nothing) {
  const std::string text = write_pdg(*find_family("inception")->make(150, 5));
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line != "pdg 1") lines.push_back(line);
  }
  const auto planned = [&] {
    std::string graph;
    for (const std::string& line : lines) graph += line + "\n";
    const PlannerStory story(graph, StoryMachine{.devices = 4}.build());
    return story.text(pardnn_row(story.problem, {}));
  };
  const std::string expected = planned();
  Random random(9);
  for (std::size_t left = lines.size(); left > 1; --left) {
    std::swap(lines[left - 1], lines[random.below(static_cast<std::uint32_t>(left))]);
  }
  BOOST_TEST(planned() == expected);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
