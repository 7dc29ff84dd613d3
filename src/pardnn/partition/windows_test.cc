// Lineups, walks along them in both directions, and windows placed anew.
#include "pardnn/partition/windows.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/orders.h"
#include "pardnn/partition/planner_story_test.h"
#include "pardnn/partition/search.h"

namespace pardnn {
namespace {

struct LineupStory : PlannerStory {
  LineupStory(const std::string& graph, const std::string& placement, Rules rules)
      : PlannerStory(graph, StoryMachine{}.build(), rules), arcs(problem), windows(problem, arcs) {
    lineup.order = id_order(problem.graph());
    lineup.placement = placed(placement);
    windows.walk().time(lineup);
  }

  std::string starts() const {
    return each_op([&](OpId op) { return lineup.start_ns[op]; });
  }
  std::size_t pass(const Knobs& knobs) { return windows.pass(lineup, knobs, random); }

  Arcs arcs;
  Windows windows;
  Lineup lineup;
  Random random{1};
};

constexpr Rules kFree{.contention = false};

Run steps(std::int64_t count) {
  Run run;
  run.steps = count;
  return run;
}

BOOST_AUTO_TEST_SUITE(windows)

//   a(10) --5--> b(20)     a on d0, b and c on d1; a byte takes 1 ns
//     \---3--> c(4)
constexpr const char* kFork = "op a T 10 > 5 3\nop b T 20 < a\nop c T 4 < a:1\n";

// b waits for 5 bytes until 15 and runs until 35, then c.
BOOST_AUTO_TEST_CASE(an_op_starts_when_its_device_and_its_inputs_allow) {
  const LineupStory story(kFork, "a=0 b=1 c=1", kFree);
  BOOST_TEST(story.starts() == "a=0 b=15 c=35");
  BOOST_TEST(story.lineup.step_ns == 39);
}

// From the end: c runs first, until 4, b until 24; a waits for b, 5 ns away, and ends at 39.
BOOST_AUTO_TEST_CASE(a_mirrored_walk_goes_from_the_end_and_takes_as_long) {
  LineupStory story(kFork, "a=0 b=1 c=1", kFree);
  story.windows.walk().mirror(story.lineup);
  BOOST_TEST(story.starts() == "a=29 b=4 c=0");
  BOOST_TEST(story.lineup.step_ns == 39);
  story.windows.walk().mirror(story.lineup);
  BOOST_TEST(story.starts() == "a=0 b=15 c=35");
}

// One channel leads from d0 to d1: b's 5 bytes hold it until 15, c's 3 until 18. Free links would
// bring c's by 13, but b is before c on d1 all the same, so a short b shows it.
BOOST_AUTO_TEST_CASE(values_wait_for_their_channel_in_the_order_of_their_readers) {
  constexpr const char* kShort = "op a T 10 > 5 3\nop b T 1 < a\nop c T 4 < a:1\n";
  BOOST_TEST(LineupStory(kShort, "a=0 b=1 c=1", {}).starts() == "a=0 b=15 c=18");
  BOOST_TEST(LineupStory(kShort, "a=0 b=1 c=1", kFree).starts() == "a=0 b=15 c=16");
}

//   a(10)  b(10)  c(10)    no edges
constexpr const char* kThree = "op a T 10\nop b T 10\nop c T 10\n";

BOOST_AUTO_TEST_CASE(a_window_spreads_over_the_devices) {
  LineupStory story(kThree, "a=0 b=0 c=0", kFree);
  BOOST_TEST(story.lineup.step_ns == 30);
  BOOST_TEST(story.pass({.width = 3}) == 1);
  BOOST_TEST(story.lineup.step_ns == 20);
}

// Windows {a} and {b c}, the second alone is tried: c goes to d1, where it can start at 0.
BOOST_AUTO_TEST_CASE(windows_that_are_not_tried_stay) {
  LineupStory story(kThree, "a=0 b=0 c=0", kFree);
  BOOST_TEST(story.windows.count({.width = 2, .offset = 1}) == 2);
  BOOST_TEST(story.pass({.width = 2, .offset = 1, .first = 1}) == 1);
  BOOST_TEST(index(story.lineup.device[story.op("a")]) == 0);
  BOOST_TEST(story.lineup.step_ns == 20);
}

//   a(10) --20--> b(10)    on one device 20; b elsewhere would start at 30
BOOST_AUTO_TEST_CASE(what_would_make_the_step_longer_is_not_kept) {
  LineupStory story("op a T 10 > 20\nop b T 10 < a\n", "a=0 b=0", kFree);
  story.pass({.width = 1});
  BOOST_TEST(story.lineup.step_ns == 20);
  BOOST_TEST(index(story.lineup.device[story.op("a")]) ==
             index(story.lineup.device[story.op("b")]));
}

// A group moves as one where all of it is in the window, else it stays.
BOOST_AUTO_TEST_CASE(a_group_is_never_split) {
  const char* graph = "op a T 10 @g\nop b T 10 @g\nop c T 10\n";
  LineupStory whole(graph, "a=0 b=0 c=0", kFree);
  whole.pass({.width = 3});
  BOOST_TEST(index(whole.lineup.device[whole.op("a")]) ==
             index(whole.lineup.device[whole.op("b")]));
  BOOST_TEST(whole.lineup.step_ns == 20);
  LineupStory part(graph, "a=0 b=0 c=0", kFree);
  part.pass({.width = 1, .count = 2});  // a alone, then b alone
  BOOST_TEST(index(part.lineup.device[part.op("a")]) == 0);
  BOOST_TEST(index(part.lineup.device[part.op("b")]) == 0);
}

BOOST_AUTO_TEST_CASE(a_search_ends_where_nothing_can_be_shorter) {
  const PlannerStory story(kThree);
  Best best(story.problem);
  best.offer("start", {story.placed("a=0 b=0 c=0"), id_order(story.problem.graph())});
  BOOST_TEST(search(best, 20, steps(1'000)) < 1'000);
  BOOST_TEST(best.score().step_ns == 20);
  BOOST_TEST(best.who() == "search");
}

BOOST_AUTO_TEST_CASE(no_steps_change_nothing) {
  const PlannerStory story(kThree);
  Best best(story.problem);
  best.offer("start", {story.placed("a=0 b=0 c=0"), id_order(story.problem.graph())});
  BOOST_TEST(search(best, 20, steps(0)) == 0);
  BOOST_TEST(best.score().step_ns == 30);
  BOOST_TEST(best.who() == "start");
}

// b on d1 would make the step 10, but v leaves only 100 bytes there.
BOOST_AUTO_TEST_CASE(what_fits_stays_so) {
  const PlannerStory story("var v 900 on=d1\nop a T 10 > 200*\nop b T 10 > 200*\n");
  Best best(story.problem);
  best.offer("start", {story.placed("v=1"), id_order(story.problem.graph())});
  BOOST_TEST(best.score().fits());
  BOOST_TEST(search(best, 0, steps(20)) == 20);
  BOOST_TEST(best.score().fits());
  BOOST_TEST(best.score().step_ns == 20);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
