// When ops start and transfers run: rules N2, N3, D and T, each worked by hand. A byte takes 1 ns.
#include <boost/test/unit_test.hpp>

#include "pardnn/sim/story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(schedule)

// a(0) -> b(0) -> c(0), all on d0
BOOST_AUTO_TEST_CASE(an_op_without_cost_lasts_a_nanosecond) {
  Story story(
      "op a T 0 > 1\n"
      "op b T 0 < a > 1\n"
      "op c T 0 < b > 1\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.starts() == "a=0 b=1 c=2");
  BOOST_TEST(story.timeline->step_ns == 3);
}

// a(10) on d0, b(5) on d0; c(7) reads both
BOOST_AUTO_TEST_CASE(an_op_starts_when_its_device_is_free_and_its_inputs_are_there) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 5 > 4\n"
      "op c T 7 < a b > 4\n");
  BOOST_REQUIRE(story.run("d0: b a | d1: c"));
  // b [0,5), a [5,15); b's 4 bytes [5,9), a's [15,19); c at the later arrival.
  BOOST_TEST(story.starts() == "a=5 b=0 c=19");
  BOOST_TEST(story.timeline->step_ns == 26);
  BOOST_TEST(story.timeline->bytes_sent == 8);
}

// c on d2 reads a from d0 and b from d1: the later arrival counts, whichever sender it is from
BOOST_AUTO_TEST_CASE(the_latest_of_all_inputs_makes_an_op_ready) {
  for (const bool a_is_late : {false, true}) {
    Story story(std::string("op a T ") + (a_is_late ? "20" : "1") + " > 4\n" + "op b T " +
                    (a_is_late ? "1" : "20") + " > 4\n" + "op c T 1 < a b\n",
                StoryMachine{.devices = 3}.build());
    BOOST_REQUIRE(story.run("d0: a | d1: b | d2: c"));
    BOOST_TEST(story.start("c") == 24);
  }
}

// d0: a(10)         d1: late(1) reads a; early(1) reads nothing
BOOST_AUTO_TEST_CASE(a_sequence_waits_even_when_a_later_op_is_ready) {
  const std::string graph =
      "op a T 10 > 4\n"
      "op early T 1\n"
      "op late T 1 < a\n";
  Story strict(graph);
  BOOST_REQUIRE(strict.run("d0: a | d1: late early"));
  BOOST_TEST(strict.starts() == "a=0 early=15 late=14");
  Story fifo(graph, StoryMachine{}.build(), {.dispatch = Dispatch::kFifo});
  BOOST_REQUIRE(fifo.run("d0: a | d1: late early"));
  BOOST_TEST(fifo.starts() == "a=0 early=0 late=14");
}

// d0: a(4)   d1: x(10), then p, q, r.  p waits for x; q reads a: there at 4+2 = 6; r reads nothing
BOOST_AUTO_TEST_CASE(fifo_takes_the_op_that_was_ready_first_and_then_the_lower_id) {
  Story story(
      "op a T 4 > 2\n"
      "op p T 1 < ^x\n"
      "op q T 1 < a\n"
      "op r T 1\n"
      "op s T 1 < ^x\n"
      "op x T 10\n",
      StoryMachine{}.build(), {.dispatch = Dispatch::kFifo});
  BOOST_REQUIRE(story.run("d0: a | d1: x p q r s"));
  // Ids: a, r, x come before what waits for them: a q r x p s. At 0 r and x are ready: r first.
  // x [1,11). At 11: q was ready at 6, p and s at 11.
  BOOST_TEST(story.starts() == "a=0 q=11 r=0 x=1 p=12 s=13");
  std::string order;
  for (OpId op : story.sequences[DeviceId{1}]) order += story.problem.graph().key(op);
  BOOST_TEST(order == "rxqps");
}

// d0: a(9) -> z on d1;  d1: b(10) -> c, d.  The 1-byte copy of a arrives at 10, when b finishes.
BOOST_AUTO_TEST_CASE(fifo_sees_all_finishes_and_arrivals_of_an_instant_before_it_starts_an_op) {
  Story story(
      "op a T 9 > 1\n"
      "op b T 10 > 1\n"
      "op c T 1 < a\n"
      "op d T 1 < b\n",
      StoryMachine{}.build(), {.dispatch = Dispatch::kFifo});
  BOOST_REQUIRE(story.run("d0: a | d1: b c d"));
  BOOST_TEST(story.starts() == "a=0 b=0 c=10 d=11");
}

// d1: p(10) -> y on d0 at 11;   d2: q(5) -> z on d0 at 6;   d0 takes z although y is known before
BOOST_AUTO_TEST_CASE(fifo_lets_the_device_go_on_that_decides_earliest) {
  Story story(
      "op p T 10 > 1\n"
      "op q T 5 > 1\n"
      "op y T 20 < p\n"
      "op z T 20 < q\n",
      StoryMachine{.devices = 3}.build(), {.dispatch = Dispatch::kFifo});
  BOOST_REQUIRE(story.run("d0: y z | d1: p | d2: q"));
  BOOST_TEST(story.starts() == "p=0 q=0 y=26 z=6");
}

// The same with a port that two senders share, so that the transfer waits for its grant:
// d0: a(9) -> c on d2;  d1: e(3) -> f on d2;  d2: b(10) -> d
BOOST_AUTO_TEST_CASE(fifo_grants_what_was_asked_for_before_it_decides) {
  Story story(
      "op a T 9 > 1\n"
      "op b T 10 > 1\n"
      "op c T 1 < a\n"
      "op d T 1 < b\n"
      "op e T 3 > 2\n"
      "op f T 1 < e\n",
      with_ports(StoryMachine{.devices = 3}.build()), {.dispatch = Dispatch::kFifo});
  BOOST_REQUIRE(story.run("d0: a | d1: e | d2: b c d f"));
  // e's 2 bytes [3,5), a's byte [9,10). At 10 d2 has f (ready 5), c and d (both 10).
  BOOST_TEST(story.starts() == "a=0 b=0 c=11 d=12 e=0 f=10");
}

// a <- b, but d0 runs b first
BOOST_AUTO_TEST_CASE(a_sequence_against_an_edge_is_no_plan) {
  Story story(
      "op a T 1 > 1\n"
      "op b T 1 < a\n");
  BOOST_TEST(!story.run("d0: b a"));
}

// a -> b, c -> d; d0 runs d before a, d1 runs b before c: each waits for the other
BOOST_AUTO_TEST_CASE(sequences_that_wait_for_each_other_are_no_plan) {
  Story story(
      "op a T 1 > 1\n"
      "op b T 1 < a\n"
      "op c T 1 > 1\n"
      "op d T 1 < c\n");
  BOOST_TEST(!story.run("d0: d a | d1: b c"));
}

// a has outputs of 4 and 3 bytes, both read on d1
BOOST_AUTO_TEST_CASE(two_tensors_of_an_op_go_one_after_the_other_by_number) {
  Story story(
      "op a T 10 > 4 3\n"
      "op b T 5 < a:1\n"
      "op c T 5 < a:0\n");
  BOOST_REQUIRE(story.run("d0: a | d1: b c"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14, a:1>d1 10+4..17");
  BOOST_TEST(story.starts() == "a=0 b=17 c=22");
}

// a is read three times on d1 and once at home
BOOST_AUTO_TEST_CASE(a_tensor_goes_once_to_a_device_however_many_read_it_there) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 1 < a\n"
      "op c T 1 < a\n"
      "op d T 1 < a\n"
      "op e T 1 < a\n");
  BOOST_REQUIRE(story.run("d0: a e | d1: b c d"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14");
  BOOST_TEST(story.starts() == "a=0 b=14 c=15 d=16 e=10");
  BOOST_TEST(story.timeline->bytes_sent == 4);
}

// a's reader comes long after; the transfer is asked for at a's finish all the same
BOOST_AUTO_TEST_CASE(a_transfer_is_pushed_when_the_producer_finishes) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 1 < a\n"
      "op x T 100\n");
  BOOST_REQUIRE(story.run("d0: a | d1: x b"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14");
  BOOST_TEST(story.start("b") == 100);
}

// 4 and 3 bytes: the channel is held for overhead 5 + bytes, latency 7 comes after it is free again
BOOST_AUTO_TEST_CASE(overhead_holds_the_channel_and_latency_does_not) {
  Story story(
      "op a T 10 > 4 3\n"
      "op b T 1 < a a:1\n",
      StoryMachine{.overhead_ns = 5, .latency_ns = 7}.build());
  BOOST_REQUIRE(story.run("d0: a | d1: b"));
  // [10,19) + 7 = 26; [19,27) + 7 = 34
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..26, a:1>d1 10+9..34");
}

// 10 bytes at 3 bytes per nanosecond are 3 1/3 ns; a tensor of 0 bytes is sent like any other
BOOST_AUTO_TEST_CASE(a_transfer_time_is_rounded_up_and_at_least_a_nanosecond) {
  Story story(
      "op a T 10 > 0 10\n"
      "op b T 1 < a:1 a\n",
      StoryMachine{.bytes_per_second = 3'000'000'000}.build());
  BOOST_REQUIRE(story.run("d0: a | d1: b"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..11, a:1>d1 10+1..15");
}

// a -> b on d1 (4 bytes), and c on d1 waits for a by a control edge
BOOST_AUTO_TEST_CASE(a_control_edge_to_another_device_is_a_transfer_of_no_bytes_after_the_tensors) {
  const std::string graph =
      "op a T 10 > 4\n"
      "op b T 1 < a\n"
      "op c T 1 < ^a\n"
      "op d T 1 < ^a\n";
  Story story(graph);
  BOOST_REQUIRE(story.run("d0: a d | d1: c b"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14, ^a>d1 10+4..15");
  BOOST_TEST(story.starts() == "a=0 b=16 c=15 d=10");
  BOOST_TEST(story.timeline->bytes_sent == 4);
  Story slow(graph, StoryMachine{.overhead_ns = 3}.build());
  BOOST_REQUIRE(slow.run("d0: a d | d1: c b"));
  BOOST_TEST(slow.transfers() == "a:0>d1 10+0..17, ^a>d1 10+7..20");
}

// b reads a and waits for it besides: both are sent
BOOST_AUTO_TEST_CASE(a_control_edge_is_sent_beside_a_tensor_of_the_same_op) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 1 < a ^a\n");
  BOOST_REQUIRE(story.run("d0: a | d1: b"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14, ^a>d1 10+4..15");
  BOOST_TEST(story.start("b") == 15);
}

// d0: a(10), d1: b(10); each sends 5 bytes to the other at the same time
BOOST_AUTO_TEST_CASE(the_two_directions_of_a_link_are_independent) {
  Story story(
      "op a T 10 > 5\n"
      "op b T 10 > 5\n"
      "op c T 1 < b\n"
      "op d T 1 < a\n");
  BOOST_REQUIRE(story.run("d0: a c | d1: b d"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..15, b:0>d0 10+0..15");
}

// d0: a(20) -> c on d2, 10 bytes; d1: x(5) b(4) -> d on d2, 4 bytes; one port into d2.
// b starts after a and asks before it.
BOOST_AUTO_TEST_CASE(
    a_shared_port_serves_the_sender_that_asks_first_not_the_one_that_starts_first) {
  Story story(
      "op a T 20 > 10\n"
      "op b T 4 > 4\n"
      "op c T 1 < a\n"
      "op d T 1 < b\n"
      "op x T 5\n",
      with_ports(StoryMachine{.devices = 3}.build()));
  BOOST_REQUIRE(story.run("d0: a | d1: x b | d2: d c"));
  BOOST_TEST(story.transfers() == "b:0>d2 9+0..13, a:0>d2 20+0..30");
  BOOST_TEST(story.starts() == "a=0 b=5 c=30 d=13 x=0");
}

// The same port; a and b both ask at 10: the producer with the lower id goes first.
BOOST_AUTO_TEST_CASE(requests_of_one_instant_go_by_producer) {
  Story story(
      "op a T 10 > 3 2\n"
      "op b T 10 > 5\n"
      "op c T 1 < a b a:1\n"
      "op d T 1 < ^a\n",
      with_ports(StoryMachine{.devices = 3}.build()));
  BOOST_REQUIRE(story.run("d1: a | d0: b | d2: c d"));
  BOOST_TEST(story.transfers() ==
             "a:0>d2 10+0..13, a:1>d2 10+3..15, ^a>d2 10+5..16, b:0>d2 10+6..21");
}

// One op to two destinations over one port out of d0: the lower destination first.
BOOST_AUTO_TEST_CASE(requests_of_one_tensor_go_by_destination) {
  Story story(
      "op a T 10 > 3\n"
      "op b T 1 < a\n"
      "op c T 1 < a\n",
      with_ports(StoryMachine{.devices = 3}.build()));
  BOOST_REQUIRE(story.run("d0: a | d1: c | d2: b"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..13, a:0>d2 10+3..16");
}

// Ports.  d0: a(10) -> 10 bytes to d2.  d1: b(11) -> 5 bytes to d2, c(1) -> 3 bytes to d3.
//   a [10,20) on d0-out, d2-in
//   b asks at 11, d2-in is free at 20: [20,25) on d1-out, d2-in
//   c asks at 12, d3-in is free, but d1-out is promised until 25: [25,28)
BOOST_AUTO_TEST_CASE(a_transfer_never_slips_in_before_one_that_was_granted) {
  Story story(
      "op a T 10 > 10\n"
      "op b T 11 > 5\n"
      "op c T 1 > 3\n"
      "op p T 1 < a\n"
      "op q T 1 < b\n"
      "op r T 1 < c\n",
      with_ports(StoryMachine{.devices = 4}.build()));
  BOOST_REQUIRE(story.run("d0: a | d1: b c | d2: p q | d3: r"));
  BOOST_TEST(story.transfers() == "a:0>d2 10+0..20, b:0>d2 11+9..25, c:0>d3 12+13..28");
}

// The first case again: without contention the second tensor does not wait
BOOST_AUTO_TEST_CASE(without_contention_every_transfer_starts_when_asked) {
  Story story(
      "op a T 10 > 4 3\n"
      "op b T 5 < a:1\n"
      "op c T 5 < a:0\n",
      StoryMachine{}.build(), {.contention = false});
  BOOST_REQUIRE(story.run("d0: a | d1: b c"));
  BOOST_TEST(story.transfers() == "a:0>d1 10+0..14, a:1>d1 10+0..13");
  BOOST_TEST(story.starts() == "a=0 b=13 c=18");
}

// d0 -> d1 has no link, and nothing goes over d2
BOOST_AUTO_TEST_CASE(a_tensor_that_no_link_leads_to_its_reader_is_no_plan) {
  Machine machine = StoryMachine{.devices = 3}.build();
  machine.links[0 * 3 + 1].reset();
  Story story(
      "op a T 10 > 4\n"
      "op b T 5 < a\n",
      machine);
  BOOST_TEST(!story.run("d0: a | d1: b"));
  Story back(
      "op a T 10 > 4\n"
      "op b T 5 < a\n",
      machine);
  BOOST_TEST(back.run("d1: a | d0: b"));
}

// An `every` op is ready at 0 everywhere and nothing of it is sent, not even for a control edge.
BOOST_AUTO_TEST_CASE(every_ops_are_in_no_sequence_and_their_control_edges_are_void) {
  Story story(
      "op x Input 50 > 8 every=1\n"
      "op a T 10 < x > 4\n"
      "op b T 10 < x ^x > 4\n");
  BOOST_REQUIRE(story.run("d0: a | d1: b"));
  BOOST_TEST(story.starts() == "a=0 b=0");
  BOOST_TEST(story.transfers() == "");
}

// pdg lines out of order, ids by key where edges leave a choice: b before c before a
BOOST_AUTO_TEST_CASE(the_given_order_is_followed_where_the_rules_ask_for_it) {
  Story story(
      "op a T 1 < b at=7\n"
      "op c T 1 at=3\n"
      "op b T 1 > 1 at=5\n",
      StoryMachine{}.build(), {.given_order = true});
  const Graph& graph = story.problem.graph();
  story.placement.ops.assign(3, DeviceId{0});
  const std::vector<OpId> ids(graph.ops().begin(), graph.ops().end());
  Sequences sequences = sequences_of(story.problem, story.placement, ids);
  std::string order;
  for (OpId op : sequences[DeviceId{0}]) order += graph.key(op);
  BOOST_TEST(order == "cba");
}

// The simulator can be used again; nothing of the run before is left.
BOOST_AUTO_TEST_CASE(a_simulator_starts_afresh_each_time) {
  Story story(
      "op a T 10 > 4\n"
      "op b T 5 < a > 4\n");
  BOOST_REQUIRE(story.run("d0: a | d1: b"));
  BOOST_TEST(story.starts() == "a=0 b=14");
  story.sequences.assign(2, {});
  BOOST_TEST(!story.run("d0: b a"));
  story.sequences.assign(2, {});
  BOOST_REQUIRE(story.run("d0: a b"));
  BOOST_TEST(story.starts() == "a=0 b=10");
  BOOST_TEST(story.peaks() == "d0=8@10 d1=0@0");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
