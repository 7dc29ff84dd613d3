// Room made by order alone, worked by hand.
#include "pardnn/partition/reorder.h"

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/best.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

// The order of ops on one device after room was made at the fullest moment; "" when none was.
std::string reordered(const PlannerStory& story, const std::string& first) {
  Proposal proposal{.placement = story.placed(""), .order = {}};
  std::istringstream in(first);
  for (std::string word; in >> word;) proposal.order.push_back(story.op(word));
  Trial trial(story.problem);
  const Timeline* timeline = trial.schedule(proposal);
  BOOST_REQUIRE(timeline != nullptr);
  const Peak peak = trial.peaks()[DeviceId{}];
  Table<OpId, char> tried(story.problem.graph().ops().size(), 0);
  const auto order = make_room_by_order(story.problem, story.times, proposal.placement, *timeline,
                                        {{DeviceId{}, peak.at_ns, 1}}, tried);
  if (!order.has_value()) return "";
  proposal.order = *order;
  return story.text(proposal);
}

BOOST_AUTO_TEST_SUITE(reorder)

// While m makes 50, g (40) only lies about for its reader u; it reads p (5), which then stays.
BOOST_AUTO_TEST_CASE(what_lies_about_is_made_just_before_it_is_read) {
  const PlannerStory story(
      "op p T 1 > 5\n"
      "op g T 1 < p > 40\n"
      "op m T 1 < ^p > 50\n"
      "op n T 1 < m > 1\n"
      "op u T 1 < g n\n");
  BOOST_TEST(reordered(story, "p g m n u") == "p m n g u | ");
}

// While m makes 50, p (40) waits for u, which makes 1 and could run before.
BOOST_AUTO_TEST_CASE(what_frees_more_than_it_makes_goes_ahead) {
  const PlannerStory story(
      "op p T 1 > 40\n"
      "op m T 1 < ^p > 50\n"
      "op n T 1 < m\n"
      "op u T 1 < p > 1\n"
      "op v T 1 < u ^n\n");
  BOOST_TEST(reordered(story, "p m n u v") == "p u m n v | ");
}

// g makes 40 and frees 60 by it: to let it wait would gain nothing, and all else is needed at once.
BOOST_AUTO_TEST_CASE(nothing_is_changed_where_nothing_is_gained) {
  const PlannerStory story(
      "op p T 1 > 60\n"
      "op g T 1 < p > 40\n"
      "op m T 1 < ^g > 90\n"
      "op u T 1 < g m\n");
  BOOST_TEST(reordered(story, "p g m u") == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
