// What would be enough, worked by hand.
#include "pardnn/partition/enough.h"

#include <chrono>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

Enough enough_for(const PlannerStory& story, const Run& run = {}) {
  const Plan plan = story.plan("auto");
  BOOST_REQUIRE(!plan.score.fits());
  return find_enough(story.problem, plan, "auto", run);
}

BOOST_AUTO_TEST_SUITE(enough_)

// 60 on each of two devices of 50 are 10 too many; with 60 they fit, and not with less. v alone is
// too large for a third device of 50.
BOOST_AUTO_TEST_CASE(enough_memory_is_what_a_larger_plan_fits_into) {
  const PlannerStory story("var v 60\nvar w 60\nop a T 1\n",
                           StoryMachine{.capacity_bytes = 50}.build());
  const Enough enough = enough_for(story);
  BOOST_TEST(enough.impossible.size() == 2);
  BOOST_TEST(enough.capacity_bytes[DeviceId{0}] == 60);
  BOOST_TEST(enough.capacity_bytes[DeviceId{1}] == 60);
  BOOST_TEST(enough.devices.never);
  BOOST_TEST(enough.devices.tried == 0u);
}

// big reads 40 and 30, makes 50 and works in 5.
BOOST_AUTO_TEST_CASE(an_op_can_be_too_large_for_any_device) {
  const PlannerStory story(
      "op p T 1 > 40\nop q T 1 > 30\n"
      "op big T 1 < p q p > 50 ws=5\n",
      StoryMachine{.capacity_bytes = 100}.build());
  const Enough enough = enough_for(story);
  BOOST_REQUIRE(enough.impossible.size() == 1);
  BOOST_TEST((enough.impossible.front().unit == story.unit("big")));
  BOOST_TEST(enough.impossible.front().bytes == 40 + 30 + 50 + 5);
  BOOST_TEST(enough.devices.never);
}

// Three of 40 do not go onto two devices of 50, but onto three.
BOOST_AUTO_TEST_CASE(one_more_device_can_be_enough) {
  const PlannerStory story("var u 40\nvar v 40\nvar w 40\nop a T 1\n",
                           StoryMachine{.capacity_bytes = 50}.build());
  const Enough enough = enough_for(story);
  BOOST_TEST(!enough.devices.never);
  BOOST_TEST(enough.devices.least == 3u);
  BOOST_TEST((enough.devices.found == 3u));
  BOOST_TEST(enough.devices.tried == 3u);
}

// 5 * 40 need five devices of 50, and four are the most that are tried.
BOOST_AUTO_TEST_CASE(more_than_twice_as_many_devices_are_not_tried) {
  const PlannerStory story("var u 40\nvar v 40\nvar w 40\nvar x 40\nvar y 40\nop a T 1\n",
                           StoryMachine{.capacity_bytes = 50}.build());
  const Enough enough = enough_for(story);
  BOOST_TEST(enough.devices.least == 5u);
  BOOST_TEST(enough.devices.tried == 0u);
  BOOST_TEST(!enough.devices.found.has_value());
}

// What is not there must grow, not what is already enough.
BOOST_AUTO_TEST_CASE(no_device_is_asked_to_shrink) {
  Machine machine = StoryMachine{.capacity_bytes = 50}.build();
  machine.devices[DeviceId{1}].capacity_bytes = 500;
  const PlannerStory story("var v 60 on=d0\nop a T 1\n", machine);
  const Enough enough = enough_for(story);
  BOOST_TEST(enough.capacity_bytes[DeviceId{0}] == 60);
  BOOST_TEST(enough.capacity_bytes[DeviceId{1}] == 500);
}

BOOST_AUTO_TEST_CASE(nothing_is_tried_when_the_run_is_stopped) {
  const std::atomic<bool> stop = true;
  Run run;
  run.stop = &stop;
  const PlannerStory story("var u 40\nvar v 40\nvar w 40\nop a T 1\n",
                           StoryMachine{.capacity_bytes = 50}.build());
  const Enough enough = enough_for(story, run);
  BOOST_TEST(enough.devices.least == 3u);
  BOOST_TEST(enough.devices.tried == 0u);
}

// What is said to be enough is: planned as a user would, with what was printed.
BOOST_AUTO_TEST_CASE(what_is_said_to_be_enough_is_enough) {
  const auto graph = find_family("chain")->make(120, 1);
  const Problem problem(graph, StoryMachine{.devices = 3, .capacity_bytes = 1 << 26}.build());
  const Plan plan = make_plan(problem, "auto", {});
  BOOST_REQUIRE(!plan.score.fits());
  const Enough enough = find_enough(problem, plan, "auto", {});
  Machine machine = problem.machine();
  for (const DeviceId device : problem.devices()) {
    machine.devices[device].capacity_bytes = enough.capacity_bytes[device];
  }
  BOOST_TEST(make_plan(Problem(graph, machine), "auto", {}).score.fits());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
