// The three refinements, each worked by hand. A byte takes 1 ns to cross.
#include <boost/test/unit_test.hpp>

#include "pardnn/partition/planner_story_test.h"
#include "pardnn/partition/refine_critical_path.h"
#include "pardnn/partition/refine_ops.h"
#include "pardnn/partition/refine_paths.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(refine)

// d0: a(9) - m(9) - b(9)     s(2) lies on d1 though all it talks to is on d0: T(d0) = 27 + 5
//       \--- s ---/          received. At home it costs 2 and saves 5.
BOOST_AUTO_TEST_CASE(a_path_among_strangers_moves_to_them_when_the_greatest_load_falls) {
  const PlannerStory story(
      "op a T 9 > 5\n"
      "op m T 9 < a > 5\n"
      "op b T 9 < m s\n"
      "op s T 2 < a > 5\n");
  Refinement refinement(story.problem, story.times, story.placed("s=1"));
  refine_paths(refinement, story.flow, slice(story.flow, 2));
  BOOST_TEST(story.text(refinement.placement()) == "a=0 m=0 s=0 b=0");
}

// d0: a m b of 9 each, p(6) strayed there   d1: x n y of 9 each, q(4) strayed there.
// T(d0) = 27 + 6 + 1 + 1, T(d1) = 27 + 4 + 1 + 1. Moving p alone makes d1 27 + 4 + 6 + 1; swapping
// leaves 27 + 4 and 27 + 6.
BOOST_AUTO_TEST_CASE(two_strayed_paths_are_swapped) {
  const PlannerStory story(
      "op a T 9 > 1\nop m T 9 < a > 1\nop b T 9 < m q\n"
      "op x T 9 > 1\nop n T 9 < x > 1\nop y T 9 < n p\n"
      "op p T 6 < x > 1\n"
      "op q T 4 < a > 1\n");
  Refinement refinement(story.problem, story.times, story.placed("x=1 n=1 y=1 q=1"));
  refine_paths(refinement, story.flow, slice(story.flow, 2));
  BOOST_TEST(story.text(refinement.placement()) == "a=0 m=0 q=0 b=0 x=1 n=1 p=1 y=1");
}

// u(3) on d0 reads p on d0 and q on d1, and is read on d1: moving it saves the 20 bytes it makes
// and costs the 4 of p; q's 2 come on top of what is saved.
BOOST_AUTO_TEST_CASE(an_op_follows_its_readers_when_that_saves_more_than_its_time) {
  const auto refined = [](const std::string& bytes) {
    const PlannerStory story("op p T 5 > 4\nop q T 5 > 2\nop u T 3 < p q > " + bytes +
                             "\nop v T 5 < u\n");
    Refinement refinement(story.problem, story.times, story.placed("q=1 v=1"));
    refine_ops(refinement);
    return index(refinement.placement()[story.unit("u")]);
  };
  BOOST_TEST(refined("20") == 1u);  // 20 + 2 - 4 > 3
  BOOST_TEST(refined("5") == 0u);   // 5 + 2 - 4 = 3, not more than its time
}

BOOST_AUTO_TEST_CASE(with_its_producers_there_too_an_even_trade_is_enough) {
  const PlannerStory story("op q T 5 > 1\nop u T 3 < q > 2\nop v T 5 < u\n");
  Refinement refinement(story.problem, story.times, story.placed("q=1 v=1"));
  refine_ops(refinement);  // 1 + 2 = 3
  BOOST_TEST(index(refinement.placement()[story.unit("u")]) == 1u);
}

// a(10) - b(10) - c(10), b alone on d1: 10 + 5 + 10 + 5 + 10 = 40. The chain is a, b, c; b on c's
// device saves both crossings.
BOOST_AUTO_TEST_CASE(an_op_of_the_critical_path_moves_to_what_waits_for_it) {
  const PlannerStory story(
      "op a T 10 > 5\n"
      "op b T 10 < a > 5\n"
      "op c T 10 < b\n");
  Refinement refinement(story.problem, story.times, story.placed("b=1"));
  BOOST_TEST(refinement.step_ns() == 40);
  refine_critical_path(refinement);
  BOOST_TEST(refinement.step_ns() == 30);
  BOOST_TEST(story.text(refinement.placement()) == "a=0 b=0 c=0");
}

// z waits for b, which is sent; on z's device b would wait until x is done at 30: nothing gained.
BOOST_AUTO_TEST_CASE(a_move_that_gains_nothing_is_not_made) {
  const PlannerStory story(
      "op b T 10 > 5\n"
      "op x T 30 > 0\n"
      "op z T 1 < b x\n");
  Refinement refinement(story.problem, story.times, story.placed("b=1"));
  refine_critical_path(refinement);
  BOOST_TEST(story.text(refinement.placement()) == "b=1 x=0 z=0");
  BOOST_TEST(refinement.step_ns() == 31);
}

// A longer step is undone, an equal one kept.
BOOST_AUTO_TEST_CASE(what_makes_the_step_longer_is_undone) {
  const PlannerStory story("op a T 10\nop b T 10\n");
  Refinement refinement(story.problem, story.times, story.placed("b=1"));
  BOOST_TEST(refinement.step_ns() == 10);
  BOOST_TEST(!refinement.offer(story.placed("")));
  BOOST_TEST(story.text(refinement.placement()) == "a=0 b=1");
  BOOST_TEST(refinement.offer(story.placed("a=1")));
  BOOST_TEST(story.text(refinement.placement()) == "a=1 b=0");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
