// Which buffers exist when: rules M, V, X1, N1 and N4, each worked by hand. A byte takes 1 ns.
#include <boost/test/unit_test.hpp>

#include "pardnn/sim/story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(lifetimes)

// a(10) -> b(5) -> c(5)
BOOST_AUTO_TEST_CASE(a_buffer_lives_from_its_ops_start_to_the_finish_of_its_last_reader) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 5 < a > 6\n"
      "op c T 5 < b > 7\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,15), b 6 [10,20), c 7 [15,20)");
  // [0,10) 4; [10,15) 4+6 = 10; at 15 a goes before c comes: 6+7 = 13
  BOOST_TEST(story.peaks() == "d0=13@15 d1=0@0");
}

// a(0) -> b(0) -> c(0): no buffer is of no length
BOOST_AUTO_TEST_CASE(ops_without_cost_hold_their_buffers_too) {
  Story story(
      "op a T 0 > 1\n"
      "op b T 0 < a > 1\n"
      "op c T 0 < b > 1\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.buffers("d0") == "a 1 [0,2), b 1 [1,3), c 1 [2,3)");
  BOOST_TEST(story.peaks() == "d0=2@1 d1=0@0");
}

// The second output of a is read by nobody and is there while a runs
BOOST_AUTO_TEST_CASE(an_unread_output_lives_while_its_op_runs) {
  Story story(
      "op a T 10 > 4 100\n"
      "op b T 5 < a > 50\n");
  BOOST_REQUIRE(story.run("d0: a b"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,15), a:1 100 [0,10), b 50 [10,15)");
  BOOST_TEST(story.peaks() == "d0=104@0 d1=0@0");
  BOOST_TEST(story.transfers() == "");
}

// a(10) -> b(2) at home, -> c on d1 with 20 bytes
BOOST_AUTO_TEST_CASE(a_send_can_outlive_the_last_local_reader) {
  Story story(
      "op a T 10 > 20\n"
      "op b T 2 < a\n"
      "op c T 5 < a\n");
  BOOST_REQUIRE(story.run("d0: a b | d1: c"));
  BOOST_TEST(story.buffers("d0") == "a 20 [0,30)");
  BOOST_TEST(story.buffers("d1") == "a' 20 [10,35)");
}

// a, p both go to d1; p's copy exists from when the channel takes it, not from when it was asked
// for
BOOST_AUTO_TEST_CASE(a_copy_lives_from_the_transfers_start_to_its_last_reader) {
  Story story(
      "op a T 10 > 4 3\n"
      "op b T 5 < a\n"
      "op c T 5 < a a:1\n",
      StoryMachine{.latency_ns = 2}.build());
  BOOST_REQUIRE(story.run("d0: a | d1: b c"));
  // a [10,14) there at 16; a:1 [14,17) there at 19; b [16,21), c [21,26)
  BOOST_TEST(story.buffers("d0") == "a 4 [0,16), a:1 3 [0,19)");
  BOOST_TEST(story.buffers("d1") == "a' 4 [10,26), a:1' 3 [14,26)");
  BOOST_TEST(story.peaks() == "d0=7@0 d1=7@14");
}

// a(10) -> v(2), an alias of a half its size -> r(3) on d1
BOOST_AUTO_TEST_CASE(an_alias_read_elsewhere_is_sent_at_its_own_size_and_keeps_the_buffer) {
  Story story(
      "op a T 10 > 8\n"
      "op v View 2 < a > =0/4\n"
      "op r T 3 < v > 2\n");
  BOOST_REQUIRE(story.run("d0: a v | d1: r"));
  BOOST_TEST(story.transfers() == "v:0>d1 12+0..16");
  BOOST_TEST(story.buffers("d0") == "a 8 [0,16)");
  BOOST_TEST(story.buffers("d1") == "v' 4 [12,19), r 2 [16,19)");
  BOOST_TEST(story.peaks() == "d0=8@0 d1=6@16");
}

// The same, and r reads the base as well
BOOST_AUTO_TEST_CASE(a_base_and_its_alias_are_two_transfers_and_two_copies) {
  Story story(
      "op a T 10 > 8\n"
      "op v View 2 < a > =0/4\n"
      "op r T 3 < a v > 2\n");
  BOOST_REQUIRE(story.run("d0: a v | d1: r"));
  // a [10,18); v asks at 12 and goes [18,22)
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..18, v:0>d1 12+6..22");
  BOOST_TEST(story.buffers("d0") == "a 8 [0,22)");
  BOOST_TEST(story.buffers("d1") == "a' 8 [10,25), v' 4 [18,25), r 2 [22,25)");
  BOOST_TEST(story.peaks() == "d0=8@0 d1=14@22");
}

// a -> v = alias of a -> u = alias of v -> r, which is the last to need a's buffer
BOOST_AUTO_TEST_CASE(an_alias_of_an_alias_keeps_the_buffer_behind_both) {
  Story story(
      "op a T 10 > 8\n"
      "op r T 3 < u > 2\n"
      "op u View 2 < v > =0\n"
      "op v View 2 < a > =0\n"
      "op x T 50\n");
  BOOST_REQUIRE(story.run("d0: a v u x r"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,67), r 2 [64,67)");
}

// a on d0; v, an alias of a, is made on d1 on the copy; r on d2 reads v
BOOST_AUTO_TEST_CASE(an_alias_made_on_a_copy_and_sent_on_keeps_the_copy) {
  Story story(
      "op a T 10 > 8\n"
      "op v View 2 < a > =0/6\n"
      "op r T 3 < v\n",
      StoryMachine{.devices = 3}.build());
  BOOST_REQUIRE(story.run("d0: a | d1: v | d2: r"));
  // a [10,18) to d1; v [18,20); v's 6 bytes [20,26) to d2; r [26,29)
  BOOST_TEST(story.buffers("d0") == "a 8 [0,18)");
  BOOST_TEST(story.buffers("d1") == "a' 8 [10,26)");
  BOOST_TEST(story.buffers("d2") == "v' 6 [20,29)");
}

// The alias on the copy is read there late, or fetched
BOOST_AUTO_TEST_CASE(an_alias_made_on_a_copy_keeps_the_copy_while_it_is_read_or_fetched) {
  Story read(
      "op a T 10 > 8\n"
      "op v View 2 < a > =0\n"
      "op r T 3 < v\n"
      "op x T 50\n");
  BOOST_REQUIRE(read.run("d0: a | d1: v x r"));
  // v [18,20), x [20,70), r [70,73)
  BOOST_TEST(read.buffers("d1") == "a' 8 [10,73)");
  Story fetched(
      "op a T 10 > 8\n"
      "op v View 2 < a > =0*\n"
      "op x T 50\n");
  BOOST_REQUIRE(fetched.run("d0: a | d1: v x"));
  BOOST_TEST(fetched.buffers("d1") == "a' 8 [10,70)");
}

// a is fetched: its buffer at home stays to the end of the step, its copy only for its reader
BOOST_AUTO_TEST_CASE(a_fetched_output_lives_to_the_end_of_the_step) {
  Story story(
      "op a T 10 > 4*\n"
      "op b T 5 < a > 3\n"
      "op x T 90\n");
  BOOST_REQUIRE(story.run("d0: a x | d1: b"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,100)");
  BOOST_TEST(story.buffers("d1") == "a' 4 [10,19), b 3 [14,19)");
}

// v, an alias of a, is fetched
BOOST_AUTO_TEST_CASE(a_fetched_alias_keeps_the_buffer_behind_it) {
  Story story(
      "op a T 10 > 4\n"
      "op v View 2 < a > =0*\n"
      "op x T 90\n");
  BOOST_REQUIRE(story.run("d0: a v x"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,102)");
}

// a(10): 4 bytes -> b(5): 6 bytes and 10 of workspace -> c(5): 9 bytes
BOOST_AUTO_TEST_CASE(workspace_lies_beside_inputs_and_outputs_while_its_op_runs) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 5 < a > 6 ws=10\n"
      "op c T 5 < b > 9\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,15), b 6 [10,20), ws(b) 10 [10,15), c 9 [15,20)");
  // [10,15): 4+6+10 = 20; [15,20): 6+9 = 15
  BOOST_TEST(story.peaks() == "d0=20@10 d1=0@0");
}

// The copy of a (30 bytes) starts at the instant at which b's 20 bytes are released.
BOOST_AUTO_TEST_CASE(at_one_instant_releases_come_before_allocations) {
  Story story(
      "op a T 10 > 30\n"
      "op b T 10 > 20\n"
      "op c T 5 < a\n");
  BOOST_REQUIRE(story.run("d0: a | d1: b c"));
  BOOST_TEST(story.buffers("d1") == "b 20 [0,10), a' 30 [10,45)");
  BOOST_TEST(story.peaks() == "d0=30@0 d1=30@10");
}

// The same with an arrival elsewhere that ends b's buffer at 30, when a's copy starts
BOOST_AUTO_TEST_CASE(an_arrival_releases_before_what_is_allocated_at_that_instant) {
  Story story(
      "op a T 30 > 30\n"
      "op b T 10 > 20\n"
      "op c T 5 < a\n"
      "op d T 5 < b\n");
  BOOST_REQUIRE(story.run("d0: a d | d1: b c"));
  BOOST_TEST(story.buffers("d1") == "b 20 [0,30), a' 30 [30,65)");
  BOOST_TEST(story.peaks() == "d0=50@10 d1=30@30");
}

// Everything is rounded up to 16 bytes but the reserve, and what is sent.
BOOST_AUTO_TEST_CASE(buffers_are_rounded_up_to_the_granularity_and_transfers_are_not) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 5 < a x > 17 ws=1\n"
      "op x Input 0 > 3 every=1\n"
      "var w 5\n",
      StoryMachine{.reserve_bytes = 7, .granularity_bytes = 16}.build());
  BOOST_REQUIRE(story.run("d0: a | d1: b w"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14");
  BOOST_TEST(story.buffers("d0") == "a 16 [0,14), reserve 7 [0,19)");
  BOOST_TEST(story.buffers("d1") ==
             "x* 16 [0,19), w 16 [0,19), reserve 7 [0,19), a' 16 [10,19), b 32 [14,19), "
             "ws(b) 16 [14,19)");
  // 16 + 16 + 7 = 39 all step, then + 16 + 32 + 16 = 103
  BOOST_TEST(story.peaks() == "d0=23@0 d1=103@14");
}

// Variable m has a group with a pin and is touched by nothing; n has no group at all.
BOOST_AUTO_TEST_CASE(
    a_variable_is_resident_all_step_where_its_group_is_even_if_nothing_touches_it) {
  Story story(
      "group g on=d1\n"
      "var m 100 @g\n"
      "var n 50\n"
      "op a T 10 > 4\n");
  BOOST_REQUIRE(story.run("d0: a n | d1: m"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,10), n 50 [0,10)");
  BOOST_TEST(story.peaks() == "d0=54@0 d1=100@0");
  const VariableId m = *story.problem.graph().find_variable("m");
  BOOST_TEST(story.problem.allowed(story.problem.unit(m)).to_ulong() == 2u);
}

// d0: r1 reads w, u updates w with p's output, r2 reads w again.   d1: p reads r1, q reads r2
BOOST_AUTO_TEST_CASE(a_variable_read_elsewhere_before_and_after_its_update_is_sent_twice) {
  Story story(
      "var w 4 @g\n"
      "op r1 Read 1 < w > =0 @g\n"
      "op p Grad 3 < r1 > 2\n"
      "op u Update 2 < p !w @g\n"
      "op r2 Read 1 < w ^u > =0 @g\n"
      "op q T 1 < r2\n");
  BOOST_REQUIRE(story.run("d0: w r1 u r2 | d1: p q"));
  // r1 [0,1), sent [1,5); p [5,8), 2 bytes back [8,10); u [10,12); r2 [12,13), sent [13,17)
  BOOST_TEST(story.transfers() == "r1:0>d1 1+0..5, p:0>d0 8+0..10, r2:0>d1 13+0..17");
  BOOST_TEST(story.buffers("d0") == "w 4 [0,18), p' 2 [8,12)");
  BOOST_TEST(story.buffers("d1") == "r1' 4 [1,8), p 2 [5,10), r2' 4 [13,18)");
  BOOST_TEST(story.timeline->bytes_sent == 10);
}

// Two updates of one variable, in order; the fresh memory is only their own.
BOOST_AUTO_TEST_CASE(two_writers_of_one_variable_share_its_buffer) {
  Story story(
      "var w 4 @g\n"
      "op u1 Update 2 < !w > =0 @g\n"
      "op u2 Update 2 < !u1 > =0 @g\n"
      "op r T 3 < u2 @g\n");
  BOOST_REQUIRE(story.run("d0: w u1 u2 r"));
  BOOST_TEST(story.buffers("d0") == "w 4 [0,7)");
  BOOST_TEST(story.peaks() == "d0=4@0 d1=0@0");
}

// x is an input of every device, y an alias of it, z a constant that nobody reads
BOOST_AUTO_TEST_CASE(an_every_buffer_is_held_all_step_by_the_devices_that_read_it_or_an_alias) {
  Story story(
      "op x Input 0 > 8 every=1\n"
      "op y View 0 < x > =0 every=1\n"
      "op z Const 0 > 100 every=1\n"
      "op a T 10 < x > 4\n"
      "op b T 10 < y > 4\n"
      "op c T 20 > 4\n",
      StoryMachine{.devices = 3}.build());
  BOOST_REQUIRE(story.run("d0: a | d1: b | d2: c"));
  BOOST_TEST(story.buffers("d0") == "a 4 [0,10), x* 8 [0,20)");
  BOOST_TEST(story.buffers("d1") == "b 4 [0,10), x* 8 [0,20)");
  BOOST_TEST(story.buffers("d2") == "c 4 [0,20)");
  BOOST_TEST(story.transfers() == "");
  BOOST_TEST(story.peaks() == "d0=12@0 d1=12@0 d2=4@0");
}

// v is an ordinary op's alias of the `every` buffer x: an ordinary tensor, sent to r like any other
BOOST_AUTO_TEST_CASE(an_ordinary_alias_of_an_every_buffer_is_sent) {
  Story story(
      "op x Input 0 > 8 every=1\n"
      "op v View 2 < x > =0/6\n"
      "op r T 3 < v\n");
  BOOST_REQUIRE(story.run("d0: v | d1: r"));
  BOOST_TEST(story.transfers() == "v:0>d1 2+0..8");
  BOOST_TEST(story.buffers("d0") == "x* 8 [0,11)");
  BOOST_TEST(story.buffers("d1") == "v' 6 [2,11)");
}

// 0 bytes on 1000 bytes with a margin of 30 per mille: limits 970; the peak of 980 is 10 over
BOOST_AUTO_TEST_CASE(a_plan_fits_when_its_peak_is_within_capacity_less_the_margin) {
  const std::string graph = "op a T 10 > 980\n";
  Story story(graph, StoryMachine{}.build(), {.margin_per_mille = 30});
  BOOST_REQUIRE(story.run("d0: a"));
  BOOST_TEST(story.problem.limit_bytes(DeviceId{0}) == 970);
  const Score score = *story.simulator.score(story.placement, story.sequences);
  BOOST_TEST(score.overflow_bytes == 10);
  BOOST_TEST(!score.fits());
  Story without(graph);
  BOOST_REQUIRE(without.run("d0: a"));
  BOOST_TEST(without.simulator.score(without.placement, without.sequences)->fits());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
