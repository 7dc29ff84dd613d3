// Live lists and what they count, worked by hand.
#include "pardnn/partition/live_list.h"

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/best.h"
#include "pardnn/partition/live_bytes.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

Machine small(std::int64_t capacity_bytes) {
  return StoryMachine{.devices = 2, .capacity_bytes = capacity_bytes}.build();
}

std::string listed(const PlannerStory& story, std::int64_t fill_per_mille) {
  return story.text(
      list_by_live_bytes(story.problem, story.times, bottom_levels(story.problem, story.times),
                         {.fill_per_mille = Table<DeviceId, std::int64_t>(2, fill_per_mille)}));
}

BOOST_AUTO_TEST_SUITE(live_list)

//  a -> b -> c     a value takes 10 to cross, and all three are 30 of 30 on one device: the chain
//   \_______/      stays where it began.
BOOST_AUTO_TEST_CASE(a_chain_stays_on_a_device_with_room) {
  const PlannerStory story("op a T 5 > 10\nop b T 5 < a > 10\nop c T 5 < a b > 10\n", small(30));
  BOOST_TEST(listed(story, 1000) == "a b c | ");
}

// p and q (40 each) are kept for r and s. d0 may hold 90 of 100: with q it holds 80; m, which makes
// 15, would be the third there, 95. On d1 it is alone.
BOOST_AUTO_TEST_CASE(what_passes_the_fill_goes_elsewhere) {
  const std::string graph =
      "op p T 10 > 40\n"
      "op q T 10 < p > 40\n"
      "op m T 10 < ^q > 15\n"
      "op r T 10 < p q m > 1\n";
  BOOST_TEST(listed(PlannerStory(graph, small(100)), 1000) == "p q m r | ");
  BOOST_TEST(listed(PlannerStory(graph, small(100)), 900) == "p q r | m");
}

BOOST_AUTO_TEST_CASE(an_op_may_read_one_value_twice) {
  const PlannerStory story("op a T 5 > 10\nop b T 5 < a > 10\nop c T 5 < b b a a > 10\n");
  BOOST_TEST(listed(story, 1000) == "a b c | ");
}

// Reads of weights wait for the op that multiplies by them and go where it goes.
BOOST_AUTO_TEST_CASE(a_read_of_weights_goes_with_its_reader) {
  const PlannerStory story(
      "var v 60 @g\n"
      "var w 60 @h\n"
      "op x T 10 > 5\n"
      "op read_v Read 1 < v > =0/60 @g\n"
      "op read_w Read 1 < w > =0/60 @h\n"
      "op y T 10 < x read_v > 5\n"
      "op z T 10 < y read_w > 5\n",
      small(100));
  const Proposal proposal =
      list_by_live_bytes(story.problem, story.times, bottom_levels(story.problem, story.times),
                         {.fill_per_mille = Table<DeviceId, std::int64_t>(2, 1000)});
  BOOST_TEST((proposal.placement[story.unit("y")] == proposal.placement[story.unit("read_v")]));
  BOOST_TEST((proposal.placement[story.unit("z")] == proposal.placement[story.unit("read_w")]));
  BOOST_TEST(
      (proposal.placement[story.unit("read_v")] != proposal.placement[story.unit("read_w")]));
  Best best(story.problem);
  BOOST_TEST(best.offer("test", proposal)->fits());
}

// p (40) was made on d0 while nothing else was there. Given to d1 it lies there from then on, also
// while q (30) was made there: 70, though q is gone when r is given away.
BOOST_AUTO_TEST_CASE(a_copy_counts_from_when_it_was_made) {
  const PlannerStory story(
      "op p T 1 > 40\n"
      "op q T 1 < ^p > 30\n"
      "op n T 1 < q ^p\n"
      "op r T 1 < p ^n > 5\n");
  const DeviceId d0{}, d1{1};
  const auto nothing = [](OpId) {};
  LiveBytes bytes(story.problem);
  const auto play = [&](const std::string& op, DeviceId device) {
    bytes.give(story.op(op), device, nothing);
    bytes.start(story.op(op));
    bytes.finish(story.op(op), nothing);
  };
  play("p", d0);
  play("q", d1);
  BOOST_TEST(bytes.used_bytes(d1) == 30);
  play("n", d1);
  BOOST_TEST(bytes.used_bytes(d1) == 0);
  BOOST_TEST(bytes.most_with(story.op("r"), d0, {}) == 40 + 5);
  BOOST_TEST(bytes.most_with(story.op("r"), d1, {}) == 40 + 30);
  bytes.give(story.op("r"), d1, nothing);
  // Sent, and nobody else reads it: gone from d0.
  BOOST_TEST(bytes.used_bytes(d0) == 0);
  BOOST_TEST(bytes.used_bytes(d1) == 40);
  BOOST_TEST(bytes.growth_bytes(story.op("r")) == -40);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
