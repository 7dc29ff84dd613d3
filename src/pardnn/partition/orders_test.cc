// Orders: what list scheduling takes when, worked by hand. A byte takes 1 ns to cross.
#include "pardnn/partition/orders.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/local_buffers.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

std::string keys(const PlannerStory& story, const std::vector<OpId>& order) {
  std::string text;
  for (const OpId op : order) {
    text += (text.empty() ? "" : " ") + std::string(story.problem.graph().key(op));
  }
  return text;
}

std::string listed(const PlannerStory& story, const std::string& placement, Take take) {
  const UnitPlacement placed = story.placed(placement);
  return keys(story, list_order(story.problem, story.times, placed,
                                bottom_levels(story.problem, story.times, placed), take));
}

BOOST_AUTO_TEST_SUITE(orders)

BOOST_AUTO_TEST_CASE(the_given_order_is_that_of_at) {
  const PlannerStory story("op a T 1 at=30\nop b T 1 at=10\nop c T 1 at=20\n");
  BOOST_TEST(keys(story, given_order(story.problem.graph())) == "b c a");
  BOOST_TEST(keys(story, id_order(story.problem.graph())) == "a b c");
}

// b leads to 8 ns of work, c to 2: b first although c has waited as long.
BOOST_AUTO_TEST_CASE(the_longest_way_to_the_end_goes_first) {
  const PlannerStory story(
      "op a T 1 > 1\n"
      "op c T 2 < a\n"
      "op b T 3 < a > 1\n"
      "op d T 5 < b\n");
  BOOST_TEST(listed(story, "", Take::kPriority) == "a b d c");
}

// d1 has nothing but b, which waits for the copy of a: 1 + 4. Meanwhile d0 goes on.
BOOST_AUTO_TEST_CASE(a_device_waits_for_arrivals_not_for_finishes) {
  const PlannerStory story(
      "op a T 1 > 4\n"
      "op b T 9 < a\n"
      "op c T 2\n"
      "op d T 3\n");
  // a [0,1), c and d by priority d first: [1,4) and [4,6); b at 5.
  BOOST_TEST(listed(story, "b=1", Take::kPriority) == "a d c b");
}

// After loss, grad (to the end 1 + 20 + 1) outranks dw (1 + 1); dw keeps 1 and frees the 10 of x.
BOOST_AUTO_TEST_CASE(what_frees_memory_can_go_first) {
  const PlannerStory story(
      "op x T 1 > 10\n"
      "op loss T 1 < ^x > 5\n"
      "op grad T 1 < loss > 5\n"
      "op more T 20 < grad\n"
      "op dw T 1 < x loss > 1\n"
      "op update T 1 < dw\n");
  BOOST_TEST(listed(story, "", Take::kPriority) == "x loss grad more dw update");
  // dw: +1 - 10; then update: -1; then grad: +5 - 5 = 0.
  BOOST_TEST(listed(story, "", Take::kFreeing) == "x loss dw update grad more");
}

// big needs 90 with 20 there already and 100 allowed; small, that frees 20 for 15, goes before it
// although it ranks lower.
BOOST_AUTO_TEST_CASE(what_would_pass_the_limit_waits) {
  const std::string graph =
      "op s T 1 > 20\n"
      "op big T 50 < ^s > 90\n"
      "op end T 50 < big\n"
      "op small T 1 < s > 25\n"
      "op last T 1 < small\n";
  const PlannerStory tight(graph, StoryMachine{.capacity_bytes = 100}.build());
  BOOST_TEST(listed(tight, "", Take::kWithinLimit) == "s small last big end");
  const PlannerStory roomy(graph);
  BOOST_TEST(listed(roomy, "", Take::kWithinLimit) == "s big end small last");
}

BOOST_AUTO_TEST_CASE(the_leanest_op_goes_first_when_asked_for) {
  const PlannerStory story(
      "op a T 1 > 30\nop b T 1 > 10\nop c T 1 > 20\n"
      "op z T 1 < a b c\n");
  BOOST_TEST(listed(story, "", Take::kLeastBytes) == "b c a z");
}

// A list's order is what the simulator runs: on d0 the same starts, so no wait is added.
BOOST_AUTO_TEST_CASE(every_order_respects_the_edges) {
  for (const Family& family : families()) {
    if (family.name == "kinds") continue;
    const Problem problem(family.make(70, 1), StoryMachine{.devices = 3}.build());
    const Times times(problem);
    UnitPlacement placement(problem.units().size(), DeviceId{});
    for (const UnitId unit : problem.units()) {
      const DeviceId wish{index(unit) % 3};
      placement[unit] = problem.is_allowed(unit, wish) ? wish : DeviceId{};
    }
    const auto rank = bottom_levels(problem, times, placement);
    Trial trial(problem);
    for (const Take take :
         {Take::kPriority, Take::kFreeing, Take::kWithinLimit, Take::kLeastBytes}) {
      const std::vector<OpId> order = list_order(problem, times, placement, rank, take);
      BOOST_TEST_CONTEXT(family.name) {
        BOOST_TEST(order.size() == id_order(problem.graph()).size());
        BOOST_TEST(trial.score({placement, order}).has_value());
      }
    }
  }
}

// a(10) is read by r and, as an alias of 4, by q on d1; w is 7 bytes of a variable.
BOOST_AUTO_TEST_CASE(local_buffers_know_what_is_there_and_what_an_op_frees) {
  const PlannerStory story(
      "var w 7\n"
      "op a T 1 > 10 @g\n"
      "op v T 1 < a > =0/4 @g\n"
      "op r T 1 < a > 2\n"
      "op q T 1 < v\n"
      "op t T 1 < r\n");
  LocalBuffers buffers(story.problem, story.placed("q=1"));
  const auto finish = [&](const char* key) { buffers.finish(story.op(key), [](OpId) {}); };
  const DeviceId d0{0}, d1{1};
  BOOST_TEST(buffers.used_bytes(d0) == 7);
  BOOST_TEST(buffers.taken_bytes(story.op("a")) == 10);
  BOOST_TEST(buffers.growth_bytes(story.op("r")) == 2);  // v reads a as well
  buffers.start(story.op("a"));
  finish("a");
  BOOST_TEST(buffers.used_bytes(d0) == 17);
  buffers.start(story.op("v"));
  finish("v");  // the alias goes to d1 as 4 bytes
  BOOST_TEST(buffers.used_bytes(d1) == 4);
  BOOST_TEST(buffers.growth_bytes(story.op("r")) == 2 - 10);  // now the last reader of a
  buffers.start(story.op("r"));
  finish("r");
  BOOST_TEST(buffers.used_bytes(d0) == 7 + 2);
  finish("q");
  BOOST_TEST(buffers.used_bytes(d1) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
