// The clock of a line, worked by hand, and moves that shorten one.
#include "pardnn/partition/moves.h"

#include <algorithm>
#include <span>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/line_clock.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

struct ClockStory : PlannerStory {
  ClockStory(const std::string& graph, const std::string& placement, Rules rules = {})
      : PlannerStory(graph, StoryMachine{}.build(), rules), arcs(problem), clock(problem, arcs) {
    lineup.order = id_order(problem.graph());
    lineup.placement = placed(placement);
    clock.start(lineup);
  }

  std::string tight() const {
    std::string keys;
    for (const OpId op : clock.order()) {
      const std::span<const OpId> tight = clock.tight();
      if (std::find(tight.begin(), tight.end(), op) == tight.end()) continue;
      keys += (keys.empty() ? "" : " ") + std::string(problem.graph().key(op));
    }
    return keys;
  }
  DeviceId device(std::uint32_t number) const { return DeviceId{number}; }
  bool improve(std::size_t work) { return Moves(problem, arcs).improve(lineup, work, random); }

  Arcs arcs;
  LineClock clock;
  Lineup lineup;
  Random random{1};
};

BOOST_AUTO_TEST_SUITE(moves)

//   a(10) --5--> b(20)     a byte takes 1 ns
//     \---3--> c(4)
constexpr const char* kFork = "op a T 10 > 5 3\nop b T 20 < a\nop c T 4 < a:1\n";

// b's bytes cross until 15, c's until 18; b runs until 35, then c. With c beside a, b is last.
BOOST_AUTO_TEST_CASE(a_unit_moves_and_what_follows_is_timed_anew) {
  ClockStory story(kFork, "a=0 b=1 c=1");
  BOOST_TEST(story.clock.step_ns() == 39);
  BOOST_TEST(story.tight() == "a b c");
  story.clock.move(story.unit("c"), story.device(0));
  BOOST_TEST(story.clock.keeps(39));
  BOOST_TEST(story.clock.step_ns() == 35);
  BOOST_TEST(story.tight() == "a b");
}

// c's 30 bytes hold the channel until 40, d's 5 until 45; without c they arrive at 15.
BOOST_AUTO_TEST_CASE(a_transfer_that_goes_away_lets_the_next_go_sooner) {
  ClockStory story("op a T 10 > 30 5\nop c T 1 < a\nop d T 1 < a:1\n", "a=0 c=1 d=1");
  BOOST_TEST(story.clock.step_ns() == 46);
  story.clock.move(story.unit("c"), story.device(0));
  BOOST_TEST(story.clock.keeps(46));
  BOOST_TEST(story.clock.step_ns() == 16);
}

BOOST_AUTO_TEST_CASE(a_change_that_is_too_long_leaves_all_as_it_was) {
  ClockStory story(kFork, "a=0 b=0 c=0");
  BOOST_TEST(story.clock.step_ns() == 34);
  story.clock.move(story.unit("a"), story.device(1));
  story.clock.shift(2, 1);
  BOOST_TEST(!story.clock.keeps(34));
  BOOST_TEST(story.clock.step_ns() == 34);
  BOOST_TEST(index(story.clock.device(story.unit("a"))) == 0);
  BOOST_TEST(story.clock.position(story.op("c")) == 2);
  story.clock.move(story.unit("c"), story.device(1));  // its 3 bytes arrive at 13
  BOOST_TEST(story.clock.keeps(34));
  BOOST_TEST(story.clock.step_ns() == 30);
}

//   a(10)   b(20) --5--> c(7)    a and b on d0, c on d1: b first saves the 10 of a
BOOST_AUTO_TEST_CASE(an_op_goes_before_another_of_its_device) {
  ClockStory story("op a T 10\nop b T 20 > 5\nop c T 7 < b\n", "a=0 b=0 c=1");
  BOOST_TEST(story.clock.step_ns() == 42);
  story.clock.shift(1, 0);
  BOOST_TEST(story.clock.keeps(41));
  BOOST_TEST(story.clock.step_ns() == 32);
  BOOST_TEST(story.tight() == "b c");
}

BOOST_AUTO_TEST_CASE(no_change_is_no_change) {
  ClockStory story(kFork, "a=0 b=0 c=0");
  BOOST_TEST(!story.clock.keeps(1000));
}

BOOST_AUTO_TEST_CASE(moves_spread_what_waits_for_its_device) {
  ClockStory story("op a T 10\nop b T 10\nop c T 10\n", "a=0 b=0 c=0");
  BOOST_TEST(story.improve(100));
  story.clock.start(story.lineup);
  BOOST_TEST(story.clock.step_ns() == 20);
}

// Alone elsewhere a, b or c would pay 30 twice; the chain as a lump frees d0 for d at no price.
BOOST_AUTO_TEST_CASE(moves_take_a_lump_along) {
  ClockStory story("op a T 10 > 30\nop b T 10 < a > 30\nop c T 10 < b\nop d T 30\n",
                   "a=0 b=0 c=0 d=0");
  BOOST_TEST(story.improve(1000));
  story.clock.start(story.lineup);
  BOOST_TEST(story.clock.step_ns() == 30);
}

BOOST_AUTO_TEST_CASE(what_is_pinned_stays_and_tries_end) {
  ClockStory story("op a T 10 on=d0\nop b T 10 on=d0\n", "a=0 b=0");
  BOOST_TEST(!story.improve(1000));
  BOOST_TEST(index(story.lineup.placement[story.unit("b")]) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
