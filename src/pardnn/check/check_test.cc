// The checker finds every kind of wrong prediction and names it. All right numbers are worked by
// hand, so that the simulator has no part in it.
#include <boost/test/unit_test.hpp>

#include "pardnn/check/check_story_test.h"

namespace pardnn {
namespace {

using namespace checking_story;

BOOST_AUTO_TEST_SUITE(check_plan)

BOOST_AUTO_TEST_CASE(a_right_plan_is_not_complained_about) {
  BOOST_TEST(right_plan().complaints() == "");
}

// --- times ---

BOOST_AUTO_TEST_CASE(an_op_that_starts_1_ns_early_or_late) {
  BOOST_TEST(after([](Story& s) { s.start("d", 30); }) ==
             "start of op d in ns: the plan says 30, it is 31");
  BOOST_TEST(after([](Story& s) { s.start("u", 47); }) ==
             "start of op u in ns: the plan says 47, it is 46");
}

BOOST_AUTO_TEST_CASE(a_constant_that_starts_at_some_time) {
  BOOST_TEST(after([](Story& s) { s.start("k", 1); }) ==
             "start of op k in ns: the plan says 1, it is 0");
}

BOOST_AUTO_TEST_CASE(a_step_that_is_too_short) {
  BOOST_TEST(after([](Story& s) { s.plan.prediction.step_ns = s.plan.score.step_ns = 48; }) ==
             "step in ns: the plan says 48, it is 49; "
             "step of the score in ns: the plan says 48, it is 49");
}

BOOST_AUTO_TEST_CASE(a_bound_above_the_step) {
  BOOST_TEST(after([](Story& s) { s.plan.bound_ns = 50; }) ==
             "the bound, 50 ns, is above the step, 49 ns");
}

// --- transfers ---

BOOST_AUTO_TEST_CASE(a_transfer_that_is_missing) {
  BOOST_TEST(after([](Story& s) {
               auto& transfers = s.plan.prediction.transfers;
               transfers.erase(transfers.begin() + 1);
             }) == "transfer of output 1 of b to d1 is missing");
}

BOOST_AUTO_TEST_CASE(a_control_edge_that_is_not_sent) {
  BOOST_TEST(after([](Story& s) {
               auto& transfers = s.plan.prediction.transfers;
               transfers.erase(transfers.begin() + 2);
             }) == "transfer of the control edge from b to d1 is missing");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_is_listed_twice) {
  BOOST_TEST(after([](Story& s) {
               auto& transfers = s.plan.prediction.transfers;
               transfers.insert(transfers.begin(), transfers.front());
             }) == "transfer of output 0 of b to d1: nobody there reads it, or it is listed twice");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_nobody_reads) {
  BOOST_TEST(after([](Story& s) { s.send("c", std::nullopt, 0, 0, 17, 40, 45); }) ==
             "transfer of the control edge from c to d1: nobody there reads it, or it is listed "
             "twice");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_overlaps_the_one_before_it_on_its_channel) {
  BOOST_TEST(after([](Story& s) { s.transfer(1).start_ns = 21; }) ==
             "transfer of output 1 of b to d1, start in ns: the plan says 21, it is 22");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_is_asked_for_early) {
  BOOST_TEST(after([](Story& s) { s.transfer(3).request_ns = 16; }) ==
             "transfer of output 0 of c to d1, request in ns: the plan says 16, it is 17");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_arrives_late) {
  BOOST_TEST(after([](Story& s) { s.transfer(4).arrival_ns = 47; }) ==
             "transfer of output 0 of d to d0, arrival in ns: the plan says 47, it is 46");
}

BOOST_AUTO_TEST_CASE(a_transfer_of_other_bytes) {
  BOOST_TEST(after([](Story& s) { s.transfer(0).bytes = 9; }) ==
             "transfer of output 0 of b to d1, bytes: the plan says 9, it is 8");
}

BOOST_AUTO_TEST_CASE(a_transfer_from_where_its_producer_is_not) {
  BOOST_TEST(after([](Story& s) { s.transfer(0).from = d1; }) ==
             "transfer of output 0 of b to d1 leaves from the wrong device");
}

BOOST_AUTO_TEST_CASE(transfers_out_of_order) {
  BOOST_TEST(after([](Story& s) { std::swap(s.transfer(0), s.transfer(1)); }) ==
             "transfer of output 0 of b to d1 is listed after a later one");
}

BOOST_AUTO_TEST_CASE(a_transfer_of_what_the_graph_has_not) {
  BOOST_TEST(says(after([](Story& s) { s.transfer(0).output = 7; }),
                  "transfer of output 7 of b to d1: nobody there reads it"));
  BOOST_TEST(says(after([](Story& s) { s.transfer(0).producer = OpId{99}; }),
                  "there is a transfer of an op that the graph has not"));
  BOOST_TEST(says(after([](Story& s) { s.transfer(0).to = DeviceId{9}; }),
                  "there is a transfer of op b from or to a device that the machine has not"));
}

BOOST_AUTO_TEST_CASE(bytes_sent_that_are_no_sum) {
  BOOST_TEST(after([](Story& s) { s.plan.prediction.bytes_sent = 24; }) ==
             "bytes sent: the plan says 24, it is 23");
}

// --- memory ---

BOOST_AUTO_TEST_CASE(a_peak_that_is_off_by_one_byte) {
  BOOST_TEST(after([](Story& s) { s.peak(0).bytes = 44; }) ==
             "peak of d0 in bytes: the plan says 44, it is 45");
  BOOST_TEST(after([](Story& s) { s.peak(1).bytes = 45; }) ==
             "peak of d1 in bytes: the plan says 45, it is 44");
}

BOOST_AUTO_TEST_CASE(a_peak_at_another_moment) {
  BOOST_TEST(after([](Story& s) { s.peak(1).at_ns = 30; }) ==
             "moment of the peak of d1 in ns: the plan says 30, it is 31");
}

BOOST_AUTO_TEST_CASE(an_any_timing_peak_that_is_off) {
  BOOST_TEST(after([](Story& s) { s.peak(0).any_timing_bytes = 45; }) ==
             "any-timing peak of d0 in bytes: the plan says 45, it is 48");
}

// --- score ---

BOOST_AUTO_TEST_CASE(a_score_of_other_numbers) {
  BOOST_TEST(after([](Story& s) { s.plan.score.step_ns = 40; }) ==
             "step of the score in ns: the plan says 40, it is 49");
  BOOST_TEST(after([](Story& s) { s.plan.score.bytes_sent = 0; }) ==
             "bytes sent of the score: the plan says 0, it is 23");
  BOOST_TEST(after([](Story& s) { s.plan.score.overflow_bytes = 1; }) ==
             "overflow in bytes: the plan says 1, it is 0");
}

// With a margin of 100 per mille the limits are 45 - 4 and 44 - 4, exceeded by 4 each.
BOOST_AUTO_TEST_CASE(an_overflow_that_forgets_the_margin) {
  Story story = right_plan({.margin_per_mille = 100});
  BOOST_TEST(story.complaints() == "overflow in bytes: the plan says 0, it is 8");
  story.plan.score.overflow_bytes = 8;
  BOOST_TEST(story.complaints() == "");
}

// Planned for any timing, 48 bytes count against the 45 of d0.
BOOST_AUTO_TEST_CASE(an_overflow_that_forgets_the_any_timing_peak) {
  Story story = right_plan({.any_timing = true});
  BOOST_TEST(story.complaints() == "overflow in bytes: the plan says 0, it is 3");
}

// --- rules ---

BOOST_AUTO_TEST_CASE(a_prediction_that_lets_transfers_wait_where_they_do_not) {
  const std::string complaints = right_plan({.contention = false}).complaints();
  BOOST_TEST(
      says(complaints, "transfer of output 1 of b to d1, start in ns: the plan says 22, it is 12"));
  BOOST_TEST(says(complaints, "start of op d in ns: the plan says 31, it is 25"));
}

// First come, first served has no fixed sequences, and no any-timing peak.
BOOST_AUTO_TEST_CASE(an_any_timing_peak_where_there_is_none) {
  BOOST_TEST(right_plan({.dispatch = Dispatch::kFifo}).complaints() ==
             "any-timing peak of d0 in bytes: the plan says 48, it is 0; "
             "any-timing peak of d1 in bytes: the plan says 44, it is 0");
}

// c is ready at 12, long before u.
BOOST_AUTO_TEST_CASE(a_sequence_that_is_not_what_comes_first) {
  Story story = right_plan({.dispatch = Dispatch::kFifo});
  story.peak(0).any_timing_bytes = story.peak(1).any_timing_bytes = 0;
  BOOST_TEST(story.complaints() == "");
  std::swap(story.plan.sequences[d0][2], story.plan.sequences[d0][3]);
  BOOST_TEST(story.complaints() == "the sequence of d0 is not the order in which its ops start");
}

// The program has u before c.
BOOST_AUTO_TEST_CASE(a_sequence_against_the_given_order) {
  std::string graph =
      "pdg 1\n"
      "group g on=d0\n"
      "var v 20 @g\n"
      "op k Const 0 > 16 every=1\n"
      "op r Read 2 < v > =0 @g at=0\n"
      "op b Product 10 < r > 8 4 ws=6 at=1\n"
      "op c Sum 5 < b > 8~0 not=d1 at=4\n"
      "op d Loss 7 < b b:1 > 3* at=2\n"
      "op e Report 4 < c d k ^b at=5\n"
      "op u Update 3 < d !v ^r @g at=3\n";
  BOOST_TEST(says(right_plan({.given_order = true}, graph).complaints(),
                  "op u comes after c in a sequence, against the given order"));
}

BOOST_AUTO_TEST_CASE(a_transfer_where_there_is_no_link) {
  Story whole = right_plan();
  Machine machine = whole.problem.machine();
  machine.links[2].reset();  // from d1 to d0
  const Problem problem(whole.problem.shared_graph(), machine);
  const auto found = check(problem, whole.plan);
  BOOST_REQUIRE(found.size() == 1);
  BOOST_TEST(found.front() == "op d is read on d0, and d1 has no link to it");
}

BOOST_AUTO_TEST_CASE(no_more_is_said_than_was_asked_for) {
  Story story = right_plan();
  for (const char* key : {"b", "c", "d", "e", "u"}) story.start(key, 1);
  BOOST_TEST(check(story.problem, story.plan, 3).size() == 3);
  BOOST_TEST(check(story.problem, story.plan, 20).size() == 5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
