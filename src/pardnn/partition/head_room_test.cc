// Room for what a search moves, and what the search does where there is none.
#include "pardnn/partition/head_room.h"

#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/line_clock.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/planner_story_test.h"
#include "pardnn/partition/windows.h"

namespace pardnn {
namespace {

struct RoomStory : PlannerStory {
  RoomStory(const std::string& graph, const std::string& placement, std::int64_t capacity_bytes)
      : PlannerStory(graph, StoryMachine{.capacity_bytes = capacity_bytes}.build(),
                     {.contention = false}),
        arcs(problem),
        trial(problem) {
    lineup.order = id_order(problem.graph());
    lineup.placement = placed(placement);
    trial.score({lineup.placement, lineup.order});
    room.emplace(problem, times, lineup.placement, trial);
  }

  // "v=1 w=1": whether all of these have room there, together.
  bool takes(const std::string& moved, const std::vector<UnitId>& units) {
    return room->takes(units, placed(moved));
  }
  UnitId variable(const std::string& key) const {
    return problem.unit(*problem.graph().find_variable(key));
  }

  Arcs arcs;
  Trial trial;
  Lineup lineup;
  std::optional<HeadRoom> room;
  Random random{1};
};

BOOST_AUTO_TEST_SUITE(head_room)

// Of 100 bytes d1 has 70 left: v and w go there, 60, and then x, 20, does not; with w back it does.
BOOST_AUTO_TEST_CASE(what_was_taken_counts_until_the_restart) {
  RoomStory story("var v 30\nvar w 30\nvar x 20\nvar y 30\nop a T 1\n", "y=1", 100);
  const UnitId v = story.variable("v"), w = story.variable("w"), x = story.variable("x");
  BOOST_TEST(story.takes("v=1 w=1", {v, w}));
  BOOST_TEST(!story.takes("v=1 w=1 x=1", {x}));
  BOOST_TEST(story.takes("v=1 y=1", {w}));
  BOOST_TEST(story.takes("v=1 x=1 y=1", {x}));
  story.room->restart();
  BOOST_TEST(story.takes("x=1 v=1 y=1", {x, v}));
}

// v(60) and w(60) overfill d0 by 20: nothing more may go there, and of the two d1 takes one.
BOOST_AUTO_TEST_CASE(a_device_that_is_too_full_may_stay_so) {
  RoomStory story("var v 60\nvar w 60\nvar x 10\nop a T 1\n", "x=1", 100);
  BOOST_TEST(!story.takes("", {story.variable("x")}));
  BOOST_TEST(story.takes("v=1 x=1", {story.variable("v")}));
  BOOST_TEST(!story.takes("v=1 w=1 x=1", {story.variable("w")}));
}

// What a, b and c make stays until the end. d1 has 60 of 100 left: b's 50 go there, c's do not.
BOOST_AUTO_TEST_CASE(the_clock_keeps_what_has_room) {
  RoomStory story("var v 40\nop a T 10\nop b T 10 > 50*\nop c T 10 > 50*\n", "v=1", 100);
  LineClock clock(story.problem, story.arcs);
  Walk(story.problem, story.arcs).time(story.lineup);
  clock.start(story.lineup);
  clock.move(story.unit("b"), DeviceId{1});
  BOOST_TEST(clock.keeps(30, &*story.room));
  clock.move(story.unit("c"), DeviceId{1});
  BOOST_TEST(!clock.keeps(30, &*story.room));
  BOOST_TEST(index(clock.device(story.unit("c"))) == 0);
  BOOST_TEST(clock.step_ns() == 20);
}

// a and b, one after the other on d0, could run beside each other; d1 has 5 left for the 9 of one.
BOOST_AUTO_TEST_CASE(a_window_stays_as_it_was_where_there_is_no_room) {
  RoomStory story("var v 95\nop a T 10 > 9*\nop b T 10 > 9*\n", "v=1", 100);
  Windows windows(story.problem, story.arcs);
  windows.walk().time(story.lineup);
  BOOST_TEST(windows.pass(story.lineup, {.width = 2}, story.random, &*story.room) == 0);
  BOOST_TEST(story.lineup.step_ns == 20);
  BOOST_TEST(windows.pass(story.lineup, {.width = 2}, story.random) == 1);
  BOOST_TEST(story.lineup.step_ns == 10);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
