// The any-timing peak (rule E1), each sum over positions worked by hand. A byte takes 1 ns.
#include <boost/test/unit_test.hpp>

#include "pardnn/sim/memory_profile.h"
#include "pardnn/sim/story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(any_timing)

// One device: nothing is sent, so the order alone decides and the peaks are the same.
BOOST_AUTO_TEST_CASE(on_one_device_it_is_the_peak) {
  Story story(
      "var w 7\n"
      "op a T 10 > 4\n"
      "op b T 5 < a > 6 ws=10\n"
      "op c T 5 < b > 9\n",
      StoryMachine{.devices = 1, .reserve_bytes = 3}.build());
  BOOST_REQUIRE(story.run("d0: w a b c"));
  // 7 + 3 always; at a: 4; at b: 4 + 6 + 10; at c: 6 + 9
  BOOST_TEST(story.peaks() == "d0=30@10");
  BOOST_TEST(story.any_timing_peaks() == "d0=30");
}

//   d0: a(10)  ->  d1: x(1) y(1) r, which reads a
// a depends on nothing, so its copy could come before x runs: it counts beside x's 20 bytes.
BOOST_AUTO_TEST_CASE(a_copy_counts_from_the_beginning_when_its_producer_depends_on_nothing_there) {
  Story story(
      "op a T 10 > 8\n"
      "op r T 1 < a > 1\n"
      "op x T 1 > 20\n"
      "op y T 1 > 5\n");
  BOOST_REQUIRE(story.run("d0: a | d1: x y r"));
  BOOST_TEST(story.peaks() == "d0=8@0 d1=20@0");
  BOOST_TEST(story.any_timing_peaks() == "d0=8 d1=28");
}

//   d1: x(1), y(1), r     d0: a waits for x
// a's copy can come from x's finish on: beside y (5 bytes), not beside x (20 bytes).
BOOST_AUTO_TEST_CASE(a_copy_counts_after_the_last_op_there_that_its_producer_depends_on) {
  Story by_edge(
      "op a T 10 < ^x > 8\n"
      "op r T 1 < a > 1\n"
      "op x T 1 > 20\n"
      "op y T 1 > 5\n");
  BOOST_REQUIRE(by_edge.run("d0: a | d1: x y r"));
  // x: 20; y: 8 + 5; r: 8 + 1
  BOOST_TEST(by_edge.any_timing_peaks() == "d0=8 d1=20");
  // p waits for x and comes before a in d0's sequence, which says the same.
  Story by_sequence(
      "op a T 10 > 8\n"
      "op p T 10 < ^x\n"
      "op r T 1 < a > 1\n"
      "op x T 1 > 20\n"
      "op y T 1 > 5\n");
  BOOST_REQUIRE(by_sequence.run("d0: p a | d1: x y r"));
  BOOST_TEST(by_sequence.any_timing_peaks() == "d0=8 d1=20");
}

// The copy is needed until its last reader there, or the last reader of an alias made there.
BOOST_AUTO_TEST_CASE(a_copy_counts_until_its_last_reader) {
  Story story(
      "op a T 10 > 8\n"
      "op r T 1 < a\n"
      "op v View 1 < a > =0\n"
      "op s T 1 < v > 4\n"
      "op x T 1 > 9\n");
  BOOST_REQUIRE(story.run("d0: a | d1: v r s x"));
  // v, r: 8; s: 8 + 4; x: 9
  BOOST_TEST(story.any_timing_peaks() == "d0=8 d1=12");
}

//   d0: a(10), x(50), y(50), z(1)     d1: r reads a; z reads r
// In the simulation a's 8 bytes have arrived at 18, but r could start as late as before z.
BOOST_AUTO_TEST_CASE(a_sent_buffer_counts_until_an_op_starts_that_depends_on_a_reader) {
  Story story(
      "op a T 10 > 8\n"
      "op r T 1 < a > 2\n"
      "op x T 50 > 10\n"
      "op y T 50 > 20\n"
      "op z T 1 < r > 40\n");
  BOOST_REQUIRE(story.run("d0: a x y z | d1: r"));
  // Simulated: a [0,18), x [10,60) beside a: 18; y 20 with r's copy [19,111) 2: 22; z 2 + 40.
  BOOST_TEST(story.peaks() == "d0=42@110 d1=10@18");
  // r's copy: from a's finish on (r depends on a), so x: 8 + 2 + 10; y: 8 + 2 + 20; z: 2 + 40.
  BOOST_TEST(story.any_timing_peaks() == "d0=42 d1=10");
  story.sequences.assign(2, {});
  BOOST_REQUIRE(story.run("d0: a z x y | d1: r"));
  // z: 2 + 40, a is gone; and with z last but one, y: 20.
  BOOST_TEST(story.any_timing_peaks() == "d0=42 d1=10");
}

//   d0: a, z     d1: r reads a, z reads r's 30 bytes
// Before z starts d0 may wait with both: r's copy has come, and that a has arrived is not yet
// known.
BOOST_AUTO_TEST_CASE(the_gap_before_an_op_counts_as_well) {
  Story story(
      "op a T 1 > 8\n"
      "op r T 1 < a > 30\n"
      "op z T 1 < r > 1\n");
  BOOST_REQUIRE(story.run("d0: a z | d1: r"));
  // a: 8; before z: 8 + 30; z: 30 + 1.  d1: before r 8; r 8 + 30; before the end 30
  BOOST_TEST(story.any_timing_peaks() == "d0=38 d1=38");
}

// Nothing on d0 depends on r: a's buffer counts to the end, beside y.
BOOST_AUTO_TEST_CASE(a_sent_buffer_counts_to_the_end_when_nothing_depends_on_its_readers) {
  Story story(
      "op a T 10 > 8\n"
      "op r T 1 < a > 2\n"
      "op x T 50 > 10\n"
      "op y T 50 > 20\n");
  BOOST_REQUIRE(story.run("d0: a x y | d1: r"));
  BOOST_TEST(story.peaks() == "d0=20@60 d1=10@18");
  BOOST_TEST(story.any_timing_peaks() == "d0=28 d1=10");
}

//   d0: a, x, z, y     d1: r reads a, z reads r     d2: s reads a, y reads s
// Each destination counts by itself: a's buffer until y, the later of the two.
BOOST_AUTO_TEST_CASE(a_buffer_sent_to_two_devices_counts_until_both_are_known_to_have_it) {
  Story story(
      "op a T 1 > 8\n"
      "op r T 1 < a > 1\n"
      "op s T 1 < a > 1\n"
      "op x T 1 > 2\n"
      "op y T 1 < s > 30\n"
      "op z T 1 < r > 30\n",
      StoryMachine{.devices = 3}.build());
  BOOST_REQUIRE(story.run("d0: a x z y | d1: r | d2: s"));
  // a: 8; x: 8 + 2 + copies of r and s 2; z: 8 + 2 + 30; y: copy of s 1 + 30
  BOOST_TEST(story.any_timing_peaks() == "d0=40 d1=9 d2=9");
  story.sequences.assign(3, {});
  BOOST_REQUIRE(story.run("d0: a x y z | d1: r | d2: s"));
  // y: 8 + 2 + 30, for a is still on its way to r; z: copy of r 1 + 30
  BOOST_TEST(story.any_timing_peaks() == "d0=40 d1=9 d2=9");
}

// b takes a's buffer over in the simulation, where a has arrived at d1 before b starts.
BOOST_AUTO_TEST_CASE(a_sent_buffer_is_not_taken_over_unless_its_arrival_is_certain) {
  const std::string graph =
      "op a T 1 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op r T 1 < a > 1\n"
      "op x T 50\n"
      "op y T 1 < r\n";
  Story uncertain(graph);
  BOOST_REQUIRE(uncertain.run("d0: a x b y | d1: r"));
  BOOST_TEST(uncertain.buffers("d0") == "a 8 [0,56), r' 1 [10,57)");
  BOOST_TEST(uncertain.peaks() == "d0=9@10 d1=9@9");
  // x, b: a 8 + copy of r 1 (+ b 8): 17
  BOOST_TEST(uncertain.any_timing_peaks() == "d0=17 d1=9");
  // y depends on r, so when y has started before b, a is there.
  Story certain(graph);
  BOOST_REQUIRE(certain.run("d0: a x y b | d1: r"));
  BOOST_TEST(certain.any_timing_peaks() == "d0=9 d1=9");
}

// b itself depends on r: when b starts, a has arrived.
BOOST_AUTO_TEST_CASE(the_op_that_takes_over_can_be_the_one_that_makes_the_arrival_certain) {
  Story story(
      "op a T 1 > 8\n"
      "op b T 5 < a ^r > 8~0\n"
      "op r T 1 < a > 1\n");
  BOOST_REQUIRE(story.run("d0: a b | d1: r"));
  BOOST_TEST(story.any_timing_peaks() == "d0=8 d1=9");
}

// a is never sent: b takes over in any timing, and c takes over from b.
BOOST_AUTO_TEST_CASE(a_buffer_that_stays_at_home_is_taken_over_in_any_timing) {
  Story story(
      "op a T 1 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op c T 5 < b > 8~0\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.any_timing_peaks() == "d0=8 d1=0");
}

BOOST_AUTO_TEST_CASE(a_fetched_buffer_counts_to_the_end) {
  Story story(
      "op a T 1 > 8*\n"
      "op b T 5 > 10\n");
  BOOST_REQUIRE(story.run("d0: a b"));
  BOOST_TEST(story.any_timing_peaks() == "d0=18 d1=0");
}

// More devices than one sweep carries along: d0 -> d1 -> ... -> d9, and back to d0.
BOOST_AUTO_TEST_CASE(devices_beyond_the_first_eight_are_counted_alike) {
  Story story(
      "op a T 1 > 8\n"
      "op b T 1 < a > 1\n"
      "op c T 1 < b > 2\n"
      "op x T 1 > 5\n"
      "op y T 1 > 6\n",
      StoryMachine{.devices = 10}.build());
  BOOST_REQUIRE(story.run("d9: a x c y | d8: b"));
  // d9: a 8; x: 8 + 5 + copy of b 1; c: 1 + 2 (a has arrived); y: 6.  d8: copy 8 + 1
  BOOST_TEST(story.any_timing_peaks() == "d0=0 d1=0 d2=0 d3=0 d4=0 d5=0 d6=0 d7=0 d8=9 d9=14");
}

// Score: 28 any-timing bytes on 25 are 3 over where the rules plan against that peak
BOOST_AUTO_TEST_CASE(the_score_counts_it_where_the_rules_ask_for_that) {
  const std::string graph =
      "op a T 10 > 8\n"
      "op r T 1 < a > 1\n"
      "op x T 1 > 20\n";
  for (const bool any_timing : {false, true}) {
    Story story(graph, StoryMachine{.capacity_bytes = 25}.build(), {.any_timing = any_timing});
    BOOST_REQUIRE(story.run("d0: a | d1: x r"));
    const Score score = *story.simulator.score(story.placement, story.sequences);
    BOOST_TEST(score.overflow_bytes == (any_timing ? 3 : 0));
    BOOST_TEST(score.step_ns == 19);
    BOOST_TEST(score.bytes_sent == 8);
  }
}

BOOST_AUTO_TEST_CASE(a_prediction_holds_both_peaks_and_fifo_has_only_the_simulated_one) {
  const std::string graph =
      "op a T 10 > 8\n"
      "op r T 1 < a > 1\n"
      "op x T 1 > 20\n";
  Story story(graph);
  BOOST_REQUIRE(story.run("d0: a | d1: x r"));
  const Prediction strict = *predict(story.problem, story.placement, story.sequences);
  BOOST_TEST(strict.peaks[DeviceId{1}].bytes == 20);
  BOOST_TEST(strict.peaks[DeviceId{1}].any_timing_bytes == 28);
  BOOST_TEST(strict.step_ns == 19);
  BOOST_TEST(strict.transfers.size() == 1u);
  Story fifo(graph, StoryMachine{}.build(), {.dispatch = Dispatch::kFifo});
  BOOST_REQUIRE(fifo.run("d0: a | d1: x r"));
  const Prediction free = *predict(fifo.problem, fifo.placement, fifo.sequences);
  BOOST_TEST(free.peaks[DeviceId{1}].bytes == 20);
  BOOST_TEST(free.peaks[DeviceId{1}].any_timing_bytes == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(memory_profile)

// a(10): 4 -> b(5): 6 and 10 of workspace -> c(5): 9, beside a variable of 3
BOOST_AUTO_TEST_CASE(memory_over_time_and_who_holds_it) {
  Story story(
      "var w 3\n"
      "op a T 10 > 4\n"
      "op b T 5 < a > 6 ws=10\n"
      "op c T 5 < b > 9\n");
  BOOST_REQUIRE(story.run("d0: w a b c"));
  const std::vector<Buffer>& buffers = story.simulator.lifetimes();
  const auto steps = memory_steps(buffers, DeviceId{0});
  const std::vector<MemoryStep> expected = {{0, 7}, {10, 23}, {15, 18}, {20, 0}};
  BOOST_TEST((steps == expected));
  const auto held = holders(buffers, DeviceId{0}, 10);
  BOOST_REQUIRE(held.size() == 4u);
  BOOST_TEST((held[0].what == Buffer::What::kWorkspace));
  BOOST_TEST(held[1].bytes == 6);
  BOOST_TEST(held[2].bytes == 4);
  BOOST_TEST((held[3].what == Buffer::What::kVariable));
  BOOST_TEST(holders(buffers, DeviceId{1}, 10).empty());
  const std::vector<MemoryStep> nothing = {{0, 0}};
  BOOST_TEST((memory_steps(buffers, DeviceId{1}) == nothing));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
