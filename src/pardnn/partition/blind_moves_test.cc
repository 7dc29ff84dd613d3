// Changes that only the simulator can judge: what fits is found by places and by order.
#include "pardnn/partition/blind_moves.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/orders.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

struct BlindStory : PlannerStory {
  explicit BlindStory(const std::string& graph, Rules rules = {})
      : PlannerStory(graph, StoryMachine{}.build(), rules),
        arcs(problem),
        proposal{UnitPlacement(problem.units().size(), DeviceId{}), id_order(problem.graph())} {}

  Score before() { return *trial.score(proposal); }
  Score improve(std::size_t tries) {
    const Score score = before();
    return BlindMoves(problem, arcs).improve(proposal, score, tries, trial, random);
  }

  Arcs arcs;
  Proposal proposal;
  Trial trial{problem};
  Random random{1};
};

BOOST_AUTO_TEST_SUITE(blind_moves)

// 1200 bytes in a device of 1000, until one of the two is elsewhere.
BOOST_AUTO_TEST_CASE(a_unit_goes_where_there_is_room) {
  BlindStory story("op a T 10 > 600*\nop b T 10 > 600*\n");
  BOOST_TEST(story.before().overflow_bytes == 200);
  const Score score = story.improve(50);
  BOOST_TEST(score.fits());
  BOOST_TEST(score.step_ns == 10);
  BOOST_TEST((score == story.before()));
}

// All must run on d0: a's bytes must be read before b's are made.
BOOST_AUTO_TEST_CASE(an_op_goes_where_its_inputs_are_soon_freed) {
  BlindStory story(
      "op a T 10 > 600 on=d0\nop b T 10 > 600 on=d0\n"
      "op ra T 10 < a on=d0\nop rb T 10 < b on=d0\n");
  BOOST_TEST(story.before().overflow_bytes == 200);
  BOOST_TEST(story.improve(100).fits());
  const std::string order = story.text(story.proposal);
  BOOST_TEST((order == "a ra b rb | " || order == "b rb a ra | "));
}

// Full devices can only change places: 600 and 300 bytes where a byte takes 1 ns, and c reads a.
BOOST_AUTO_TEST_CASE(units_change_places_where_neither_fits_beside_the_other) {
  BlindStory story("op a T 10 > 600*\nop b T 10 > 600*\nop c T 10 < a > 300*\n");
  story.proposal.placement = story.placed("a=0 b=1 c=1");
  BOOST_TEST(story.before().overflow_bytes == 500);  // a is copied to c
  const Score score = story.improve(200);
  BOOST_TEST(score.fits());
  BOOST_TEST(score.step_ns == 20);
}

BOOST_AUTO_TEST_CASE(a_given_order_stays) {
  BlindStory story("op a T 10 > 600* at=0\nop b T 10 > 600* at=1\n", {.given_order = true});
  BOOST_TEST(story.improve(50).fits());
  BOOST_TEST((story.proposal.order == id_order(story.problem.graph())));
}

BOOST_AUTO_TEST_CASE(no_tries_change_nothing) {
  BlindStory story("op a T 10 > 600*\nop b T 10 > 600*\n");
  BOOST_TEST(story.improve(0).overflow_bytes == 200);
  BOOST_TEST(story.text(story.proposal) == "a b | ");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
