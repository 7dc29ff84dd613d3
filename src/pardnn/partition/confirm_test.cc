// Plans that are handed out, and one whose numbers were changed on the way.
#include "pardnn/partition/confirm.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/error.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(confirming)

//   a(5) -> b(7)   on one device: b starts at 5.
constexpr const char* kChain = "op a T 5 > 10\nop b T 7 < a > 10\n";

BOOST_AUTO_TEST_CASE(a_plan_as_it_was_found_is_handed_out) {
  const PlannerStory story(kChain);
  const Plan plan = story.plan("auto");
  BOOST_TEST(plan.prediction.step_ns == 12);
  BOOST_CHECK_NO_THROW(confirm(story.problem, plan));
}

BOOST_AUTO_TEST_CASE(a_plan_with_a_wrong_number_is_a_defect_and_not_an_answer) {
  const PlannerStory story(kChain);
  Plan plan = story.plan("one-device");
  plan.prediction.start_ns[*story.problem.graph().find_op("b")] = 4;
  try {
    confirm(story.problem, plan);
    BOOST_ERROR("it was confirmed");
  } catch (const BrokenPromise& defect) {
    BOOST_TEST(std::string(defect.what()) ==
               "the checker does not confirm the plan of 'one-device'; "
               "start of op b in ns: the plan says 4, it is 5");
  }
}

BOOST_AUTO_TEST_CASE(of_many_wrong_numbers_the_first_are_told) {
  const PlannerStory story(kChain);
  Plan plan = story.plan("one-device");
  plan.prediction.start_ns.assign(2, 100);
  plan.prediction.step_ns = plan.score.step_ns = 101;
  try {
    confirm(story.problem, plan);
    BOOST_ERROR("it was confirmed");
  } catch (const BrokenPromise& defect) {
    BOOST_TEST(std::string(defect.what()) ==
               "the checker does not confirm the plan of 'one-device'; "
               "start of op a in ns: the plan says 100, it is 0; "
               "start of op b in ns: the plan says 100, it is 5; "
               "step in ns: the plan says 101, it is 12");
  }
}

// Whether it fits is an answer, and a right one.
BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_is_confirmed) {
  const PlannerStory story(kChain, StoryMachine{.devices = 1, .capacity_bytes = 15}.build());
  const Plan plan = story.plan("auto");
  BOOST_TEST(plan.score.overflow_bytes == 5);
  BOOST_CHECK_NO_THROW(confirm(story.problem, plan));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
