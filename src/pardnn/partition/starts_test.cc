// Plans made before as candidates of `auto`.
#include "pardnn/partition/starts.h"

#include <atomic>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(starts)

constexpr const char* kGraph =
    "var v 9 @g\n"
    "op a T 3 > 1\n"
    "op b T 4 < a > 1\n"
    "op c T 4 < a @g\n"
    "op d T 2 < b\n";

BOOST_AUTO_TEST_CASE(a_start_is_its_plan) {
  const PlannerStory story(kGraph);
  for (const std::string_view name : algorithm_names()) {
    const Plan plan = story.plan(name);
    const Start start = start_of(story.problem, plan);
    const Placement placement = expand(story.problem, start.proposal.placement);
    BOOST_TEST((placement == plan.placement));
    BOOST_TEST((sequences_of(story.problem, placement, start.proposal.order) == plan.sequences));
    BOOST_TEST(start.who == plan.algorithm);
  }
}

// A stopped run leaves `auto` with what the first rows say; here they are worse than the start.
BOOST_AUTO_TEST_CASE(auto_is_never_worse_than_a_start) {
  const PlannerStory story("op a T 9 > 1\nop b T 9 < a > 1\nop c T 9 > 1\nop d T 9 < c > 1\n",
                           StoryMachine{.capacity_bytes = 3}.build());
  const Plan plan = story.plan("auto");
  BOOST_TEST(plan.score.fits());
  BOOST_TEST(plan.score.step_ns == 18);
  const std::vector<Start> starts{start_of(story.problem, plan)};
  const std::atomic<bool> stop = true;
  Run stopped;
  stopped.stop = &stop;
  const Plan again = make_plan(story.problem, "auto", stopped, starts);
  BOOST_TEST((again.score <= plan.score));
  // A row is itself, whatever there is besides.
  BOOST_TEST(make_plan(story.problem, "one-device", {}, starts).score.step_ns == 36);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
