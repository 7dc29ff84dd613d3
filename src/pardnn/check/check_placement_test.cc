// The checker finds every kind of wrong placement and sequence and names it.
#include <boost/test/unit_test.hpp>

#include "pardnn/check/check_story_test.h"

namespace pardnn {
namespace {

using namespace checking_story;

BOOST_AUTO_TEST_SUITE(check_placement)

BOOST_AUTO_TEST_CASE(a_variable_apart_from_its_group) {
  BOOST_TEST(after([](Story& s) { s.plan.placement.variables[s.variable()] = d1; }) ==
             "group g is split: variable v is on d1, others are on d0");
}

BOOST_AUTO_TEST_CASE(an_op_apart_from_its_group) {
  BOOST_TEST(after([](Story& s) {
               s.place("d0", {"r", "b", "c"});
               s.place("d1", {"d", "e", "u"});
             }) == "group g is split: op u is on d1, others are on d0");
}

BOOST_AUTO_TEST_CASE(a_group_where_its_pin_does_not_let_it_be) {
  BOOST_TEST(says(after([](Story& s) {
                    s.place("d0", {"b", "c"});
                    s.place("d1", {"r", "d", "e", "u"});
                    s.plan.placement.variables[s.variable()] = d1;
                  }),
                  "group g is on d1 and may only be on d0"));
}

BOOST_AUTO_TEST_CASE(an_op_where_its_pin_forbids_it) {
  BOOST_TEST(after([](Story& s) {
               s.place("d0", {"r", "b", "u"});
               s.place("d1", {"c", "d", "e"});
             }) == "op c is on d1 and must not be there");
}

BOOST_AUTO_TEST_CASE(an_op_on_a_kind_that_it_has_no_cost_for) {
  Machine machine = Machine::uniform({.capacity_bytes = {9, 9}, .kind = "gpu"});
  machine.devices[d1].kind = "cpu";
  const Problem problem(read_pdg("pdg 1\nkind gpu cpu\nop a T 5,-\n", "story"), machine);
  Plan plan;
  plan.placement.ops.assign(1, d1);
  plan.sequences.resize(2);
  plan.sequences[d1] = {OpId{0}};
  plan.prediction.start_ns.assign(1, 0);
  plan.prediction.peaks.resize(2);
  const auto found = check(problem, plan);
  BOOST_REQUIRE(found.size() == 1);
  BOOST_TEST(found.front() == "op a is on d1, whose kind it has no cost for");
}

BOOST_AUTO_TEST_CASE(an_op_on_no_device) {
  BOOST_TEST(says(after([](Story& s) { s.plan.placement.ops[s.op("c")].reset(); }),
                  "op c is on no device"));
  BOOST_TEST(says(after([](Story& s) { s.plan.placement.ops[s.op("c")] = DeviceId{7}; }),
                  "op c is on no device"));
  BOOST_TEST(says(after([](Story& s) { s.plan.placement.variables[s.variable()] = DeviceId{7}; }),
                  "variable v is on no device"));
}

BOOST_AUTO_TEST_CASE(a_constant_that_is_placed) {
  BOOST_TEST(after([](Story& s) { s.plan.placement.ops[s.op("k")] = d1; }) ==
             "op k is an `every` op and is on d1");
}

// --- sequences ---

BOOST_AUTO_TEST_CASE(an_op_that_is_lost) {
  BOOST_TEST(after([](Story& s) { s.plan.sequences[d1].pop_back(); }) ==
             "op e is 0 times in the sequences, it must be 1");
}

BOOST_AUTO_TEST_CASE(an_op_that_runs_twice) {
  BOOST_TEST(after([](Story& s) { s.plan.sequences[d0].push_back(s.op("b")); }) ==
             "op b is 2 times in the sequences, it must be 1");
}

BOOST_AUTO_TEST_CASE(an_op_in_the_sequence_of_another_device) {
  BOOST_TEST(after([](Story& s) {
               std::swap(s.plan.sequences[d0].back(), s.plan.sequences[d1].back());
             }) ==
             "op e is in the sequence of d0 and is not placed there; "
             "op u is in the sequence of d1 and is not placed there");
}

BOOST_AUTO_TEST_CASE(a_constant_in_a_sequence) {
  BOOST_TEST(says(after([](Story& s) { s.plan.sequences[d1].push_back(s.op("k")); }),
                  "op k is 1 times in the sequences, it must be 0"));
}

BOOST_AUTO_TEST_CASE(an_op_in_a_sequence_that_the_graph_has_not) {
  BOOST_TEST(after([](Story& s) { s.plan.sequences[d1].push_back(OpId{99}); }) ==
             "the sequence of d1 holds an op that the graph has not");
}

// u waits for d until 46 and lets c wait, which starts at 49 then.
BOOST_AUTO_TEST_CASE(two_ops_of_a_sequence_in_the_other_order) {
  BOOST_TEST(
      says(after([](Story& s) { std::swap(s.plan.sequences[d0][2], s.plan.sequences[d0][3]); }),
           "start of op c in ns: the plan says 12, it is 49"));
}

BOOST_AUTO_TEST_CASE(a_sequence_against_an_edge) {
  BOOST_TEST(after([](Story& s) { std::swap(s.plan.sequences[d1][0], s.plan.sequences[d1][1]); }) ==
             "sequences and edges form a cycle: d waits for e waits for d");
}

// Each sequence alone follows the edges: c after b, u after d. Together they do not: c waits for u
// before it, u for d on the other device, d for e before it, and e for c.
BOOST_AUTO_TEST_CASE(sequences_that_form_a_cycle_together) {
  const std::string graph =
      "pdg 1\n"
      "op a T 1 > 1\n"
      "op x T 1 < b\n"
      "op b T 1 > 1\n"
      "op y T 1 < a\n";
  Story story({}, graph);
  story.plan.placement.ops.resize(4);
  story.plan.sequences.resize(2);
  story.plan.prediction.start_ns.assign(4, 0);
  story.plan.prediction.peaks.resize(2);
  story.place("d0", {"x", "a"});
  story.place("d1", {"y", "b"});
  BOOST_TEST(story.complaints() ==
             "sequences and edges form a cycle: a waits for x waits for b waits for y waits for a");
}

BOOST_AUTO_TEST_CASE(tables_of_the_wrong_size) {
  BOOST_TEST(after([](Story& s) {
               s.plan.placement.ops.resize(6);
               s.plan.sequences.resize(3);
               s.plan.prediction.start_ns.resize(9);
               s.plan.prediction.peaks.resize(1);
             }) ==
             "number of placed ops: the plan says 6, it is 7; "
             "number of start times: the plan says 9, it is 7; "
             "number of sequences: the plan says 3, it is 2; "
             "number of peaks: the plan says 1, it is 2");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
