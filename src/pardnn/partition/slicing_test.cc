// Slicing: primaries along critical paths, secondaries in between, worked by hand.
#include "pardnn/partition/slicing.h"

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(slicing)

// a(2) -4- b(3) -4- c(5): levels with transfers of 4
BOOST_AUTO_TEST_CASE(levels_are_longest_paths_with_transfers) {
  const PlannerStory story(
      "op a T 2 > 4\n"
      "op b T 3 < a > 4\n"
      "op c T 5 < b\n");
  const Levels levels = levels_of(story.flow, ClusterOfNode(3));
  BOOST_TEST(levels.top[story.node("b")] == 2 + 4);
  BOOST_TEST(levels.top[story.node("c")] == 2 + 4 + 3 + 4);
  BOOST_TEST(levels.bottom[story.node("c")] == 5);
  BOOST_TEST(levels.bottom[story.node("a")] == 2 + 4 + 3 + 4 + 5);
  BOOST_TEST(levels.length_ns == 18);
}

// a control edge is a transfer of 0 bytes, which takes 1 ns
BOOST_AUTO_TEST_CASE(a_control_edge_is_a_transfer_without_bytes) {
  const PlannerStory story("op a T 2\nop b T 3 < ^a\n");
  BOOST_TEST(levels_of(story.flow, ClusterOfNode(2)).top[story.node("b")] == 3);
}

BOOST_AUTO_TEST_CASE(transfers_inside_a_cluster_take_no_time) {
  const PlannerStory story("op a T 2 > 4\nop b T 3 < a\n");
  ClusterOfNode together(2);
  together[story.node("a")] = together[story.node("b")] = ClusterId{0};
  BOOST_TEST(levels_of(story.flow, together).top[story.node("b")] == 2);
}

BOOST_AUTO_TEST_CASE(a_chain_is_one_primary_and_the_others_start_empty) {
  const PlannerStory story(
      "op a T 2 > 4\n"
      "op b T 3 < a > 4\n"
      "op c T 5 < b\n");
  const Slicing slicing = slice(story.flow, 3);
  BOOST_TEST(slicing.primary_count == 3u);
  BOOST_TEST(story.text(slicing.clusters) == "a b c, -, -");
}

//      p(5) - q(5)
//     /           \.
//  a(1)             z(1)     the heavier way round is the primary, the other one op a side
//     \           /
//      r(2) - s(2)
BOOST_AUTO_TEST_CASE(the_second_primary_is_the_longest_path_of_what_is_left) {
  const PlannerStory story(
      "op a T 1 > 1\n"
      "op p T 5 < a > 1\n"
      "op q T 5 < p > 1\n"
      "op r T 2 < a > 1\n"
      "op s T 2 < r > 1\n"
      "op z T 1 < q s\n");
  BOOST_TEST(story.text(slice(story.flow, 2).clusters) == "a p q z, r s");
}

// With a p z taken, nothing but single ops is left: no second primary.
BOOST_AUTO_TEST_CASE(a_path_of_one_op_is_a_secondary) {
  const PlannerStory story(
      "op a T 1 > 1\n"
      "op p T 5 < a > 1\n"
      "op r T 2 < a > 1\n"
      "op z T 1 < p r\n");
  BOOST_TEST(story.text(slice(story.flow, 2).clusters) == "a p z, -, r");
}

BOOST_AUTO_TEST_CASE(without_edges_all_primaries_are_empty) {
  const PlannerStory story("op a T 5\nop b T 4\nop c T 3\n");
  // Secondaries by level: the greatest first.
  BOOST_TEST(story.text(slice(story.flow, 2).clusters) == "-, -, a, b, c");
}

// x(1) - y(1) - w(1) hang beside the primary a b c d; all have one level, so the tie decides.
BOOST_AUTO_TEST_CASE(a_secondary_starts_nearest_to_the_start) {
  const PlannerStory story(
      "op a T 9 > 0\n"
      "op b T 9 < a > 0\n"
      "op c T 9 < b > 0\n"
      "op d T 9 < c > 0\n"
      "op x T 1 < a > 0\n"
      "op y T 1 < x > 0\n"
      "op w T 1 < y > 0\n"
      "op z T 1 < w d\n");
  BOOST_TEST(story.text(slice(story.flow, 1).clusters) == "a b c d z, x y w");
}

// Both secondaries lead to z; the second walks until its heaviest reader is taken.
BOOST_AUTO_TEST_CASE(a_walk_stops_where_the_heaviest_reader_is_taken) {
  const PlannerStory story(
      "op a T 9 > 0\n"
      "op z T 9 < a y\n"
      "op u T 1 > 0\n"
      "op v T 1 > 0\n"
      "op y T 2 < u v > 0\n");
  BOOST_TEST(story.text(slice(story.flow, 1).clusters) == "a z, u y, v");
}

// w is read at the start and updated at the end: not convex. h1, h2 follow each other: one node.
BOOST_AUTO_TEST_CASE(only_convex_groups_are_one_node) {
  const PlannerStory story(
      "var w 4 @w\n"
      "op r Read 1 < w > =0 @w\n"
      "op h1 T 1 < r > 1 @h\n"
      "op h2 T 1 < h1 > 1 @h\n"
      "op g T 1 < h2 > 1\n"
      "op u Update 1 < g !w ^r @w\n");
  BOOST_TEST(story.flow.nodes().size() == 4u);
  BOOST_TEST((story.node("h1") == story.node("h2")));
  BOOST_TEST((story.node("r") != story.node("u")));
}

// a1 -> b1 and b2 -> a2: either group may be one node, both would close a cycle.
BOOST_AUTO_TEST_CASE(groups_are_contracted_only_as_long_as_no_cycle_closes) {
  const PlannerStory story(
      "op a1 T 1 > 1 @a\n"
      "op b1 T 1 < a1 @b\n"
      "op b2 T 1 > 1 @b\n"
      "op a2 T 1 < b2 @a\n");
  BOOST_TEST(story.flow.nodes().size() == 3u);
  for (const NodeId node : story.flow.nodes()) {
    for (const ValueId value : story.flow.read(node)) {
      BOOST_TEST((story.flow.value(value).maker < node));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
