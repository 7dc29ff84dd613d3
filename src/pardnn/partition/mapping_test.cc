// Mapping: which primary a secondary joins, worked by hand. A byte takes 1 ns to cross, at least 1.
#include "pardnn/partition/mapping.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/partition/clusters_to_devices.h"
#include "pardnn/partition/groups.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

// "a=0 b=1": the primary of every op.
std::string mapped(const PlannerStory& story, std::size_t primaries, Talk talk = Talk::kOnlyToIt) {
  const PrimaryOfNode primary_of = map_to_primaries(story.flow, slice(story.flow, primaries), talk);
  return story.each_op([&](OpId op) {
    return index(primary_of[story.node(std::string(story.problem.graph().key(op)))]);
  });
}

BOOST_AUTO_TEST_SUITE(mapping)

//  a(4) - b(4) - c(4)      x(4) - y(4) - z(4)
//     \- s(1) -/
// s talks to the first primary only, 1 + 1. In its span, from 4 to 8, lie b and y: W = 4 + 1 is
// above all / 2 = 4 but not above least + work + talk = 4 + 1 + 2.
BOOST_AUTO_TEST_CASE(a_secondary_joins_the_only_primary_it_talks_to) {
  const PlannerStory story(
      "op a T 4 > 0\nop b T 4 < a > 0\nop c T 4 < b s\n"
      "op s T 1 < a > 0\n"
      "op x T 4 > 0\nop y T 4 < x > 0\nop z T 4 < y\n");
  BOOST_TEST(mapped(story, 2) == "a=0 b=0 s=0 c=0 x=1 y=1 z=1");
}

// The whole step is e's span: 18 of work on one side, 10 on the other.
BOOST_AUTO_TEST_CASE(a_secondary_that_talks_to_none_goes_where_least_work_is) {
  const PlannerStory story(
      "op a T 9 > 0\nop b T 9 < a\n"
      "op c T 5 > 0\nop d T 5 < c\n"
      "op e T 3\n");
  BOOST_TEST(mapped(story, 2) == "a=0 b=0 c=1 d=1 e=1");
}

// s reads both primaries, so no round takes it. From a's finish at 9 on lies b, 9 of work, on the
// first primary and nothing on the second.
BOOST_AUTO_TEST_CASE(what_is_left_weighs_work_against_talk) {
  const auto with_bytes = [](const std::string& bytes) {
    return PlannerStory("op a T 9 > " + bytes + "\nop b T 9 < a\n" +
                        "op c T 5 > 1\nop d T 5 < c\n" + "op s T 1 < a c\n");
  };
  // 9 - 5 against 0 - 1, then 9 - 20 against 0 - 1.
  BOOST_TEST(mapped(with_bytes("5"), 2) == "a=0 b=0 c=1 d=1 s=1");
  BOOST_TEST(mapped(with_bytes("20"), 2) == "a=0 b=0 c=1 d=1 s=0");
}

// Transfers of 100 + 100 ns over a work of 4, with all work in one primary: 50 >= max(10, 2).
BOOST_AUTO_TEST_CASE(communication_dominates_when_transfers_outweigh_work_ten_times) {
  const PlannerStory heavy("op a T 2 > 100\nop b T 1 < a > 100\nop c T 1 < b\n");
  BOOST_TEST(communication_dominates(heavy.flow, slice(heavy.flow, 2)));
  const PlannerStory light("op a T 2 > 4\nop b T 1 < a > 4\nop c T 1 < b\n");
  BOOST_TEST(!communication_dominates(light.flow, slice(light.flow, 2)));
  const PlannerStory loose("op a T 2 > 100\nop b T 2 > 100\n");
  BOOST_TEST(!communication_dominates(loose.flow, slice(loose.flow, 2)));
}

// Only c may run on d2 alone; of the two primaries left the heavier comes first. d1 and d2 are of a
// kind that takes half the time.
BOOST_AUTO_TEST_CASE(pinned_work_decides_then_the_heaviest_takes_the_fastest) {
  Machine machine = StoryMachine{.devices = 3, .kind = "slow"}.build();
  machine.devices[DeviceId{1}].kind = machine.devices[DeviceId{2}].kind = "fast";
  const PlannerStory story(
      "kind slow fast\n"
      "op a T 8,4 > 0\nop b T 8,4 < a\n"
      "op c T 4,2 > 0\nop d T 4,2 < c on=d2\n"
      "op e T 2,1 > 0\nop f T 2,1 < e\n",
      machine);
  const Slicing slicing = slice(story.flow, 3);
  BOOST_TEST(story.text(slicing.clusters) == "a b, c d, e f");
  const PrimaryOfNode primary_of = map_to_primaries(story.flow, slicing, Talk::kOnlyToIt);
  const DeviceOfPrimary devices = clusters_to_devices(story.problem, story.flow, primary_of);
  BOOST_TEST(index(devices[ClusterId{0}]) == 1u);
  BOOST_TEST(index(devices[ClusterId{1}]) == 2u);
  BOOST_TEST(index(devices[ClusterId{2}]) == 0u);
  BOOST_TEST(devices_differ(story.problem));
}

BOOST_AUTO_TEST_CASE(pairs_of_devices_are_swapped_while_the_step_falls) {
  // Best where primary n is on device 2 - n.
  const auto step_ns = [](const DeviceOfPrimary& devices) {
    std::int64_t wrong = 0;
    for (const ClusterId primary : devices.ids()) {
      wrong += index(devices[primary]) + index(primary) != 2;
    }
    return std::optional<std::int64_t>(wrong);
  };
  DeviceOfPrimary start(3, DeviceId{});
  for (const ClusterId primary : start.ids()) start[primary] = DeviceId{index(primary)};
  const DeviceOfPrimary swapped = swap_devices(start, 100, step_ns);
  BOOST_TEST(*step_ns(swapped) == 0);
  BOOST_TEST(*step_ns(swap_devices(start, 0, step_ns)) == 2);  // no trial, nothing changes
}

// w's read is needed on d0 and its update on d1; the read's transfer of 8 bytes weighs more than
// the update's 2 and a work of 1 each.
BOOST_AUTO_TEST_CASE(a_group_of_several_nodes_is_brought_together) {
  const PlannerStory story(
      "var w 8 @w\n"
      "op r Read 1 < w > =0 @w\n"
      "op m T 5 < r > 2\n"
      "op u Update 1 < m !w ^r @w\n");
  const auto placed = [&](const std::string& far) {
    PrimaryOfNode primary_of(story.flow.nodes().size(), ClusterId{0});
    primary_of[story.node(far)] = ClusterId{1};
    DeviceOfPrimary devices(2, DeviceId{0});
    devices[ClusterId{1}] = DeviceId{1};
    return story.text(place_groups(story.problem, story.flow, primary_of, devices));
  };
  // r on d0 with m: 1 + 8 there and u's 2 from m besides; 1 on d1.
  BOOST_TEST(placed("u") == "r=0 m=0 u=0");
  // r on d1: 1 there; u's 1, m's 2 and r's 8 on d0.
  BOOST_TEST(placed("r") == "r=0 m=0 u=0");
  BOOST_TEST(placed("m") == "r=0 m=1 u=0");  // together already: left alone
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
