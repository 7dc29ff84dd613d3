// Bounds on memory, worked by hand.
#include "pardnn/plan/memory_bound.h"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/plan/impossible.h"
#include "pardnn/io/pdg_reader.h"

namespace pardnn {
namespace {

Problem problem_of(const std::string& graph, std::vector<std::int64_t> capacities,
                   std::int64_t reserve_bytes = 0) {
  return {
      read_pdg("pdg 1\n" + graph, "story"),
      Machine::uniform({.capacity_bytes = std::move(capacities), .reserve_bytes = reserve_bytes})};
}

std::int64_t bound_bytes(const std::string& graph) {
  return memory_bound(problem_of(graph, {1000, 1000})).bytes;
}

std::string said(const Problem& problem) {
  std::string text;
  for (const Impossible& reason : proven_impossible(problem)) {
    text += sentence(problem, reason) + "\n";
  }
  return text;
}

BOOST_AUTO_TEST_SUITE(memory_bound_suite)

// v and w, 5 on each device, and c's buffer
BOOST_AUTO_TEST_CASE(what_stays_all_step_counts_once) {
  const Problem problem =
      problem_of("var v 20\nvar w 30\nop c Const 0 > 7 every=1\nop a T 1 < c\nop b T 1 < c\n",
                 {1000, 1000}, 5);
  BOOST_TEST(memory_bound(problem).bytes == 20 + 30 + 2 * 5 + 7);
}

//   a > 10 -> b > 20 -> c > 40 -> d     and d reads what a makes
//
// When c starts: what a and b made, 40 of its own and 3 to work in
BOOST_AUTO_TEST_CASE(what_is_made_before_and_read_later_is_held) {
  const std::string graph =
      "op a T 1 > 10\nop b T 1 < a > 20\nop c T 1 < b > 40 ws=3\nop d T 1 < c a\n";
  BOOST_TEST(bound_bytes(graph) == 10 + 20 + 40 + 3);
  BOOST_TEST((memory_bound(problem_of(graph, {1000, 1000})).at ==
              read_pdg("pdg 1\n" + graph, "story")->find_op("c")));
}

// b and c may run in either order, so neither is sure to find the other's tensor there.
BOOST_AUTO_TEST_CASE(what_may_come_later_does_not_count) {
  BOOST_TEST(bound_bytes("op a T 1 > 10\nop b T 1 < a > 20\nop c T 1 < a > 30\n") == 10 + 30);
}

// b's output may take the buffer of a's over; c's is the alias.
BOOST_AUTO_TEST_CASE(buffers_taken_over_and_aliases_are_not_new) {
  BOOST_TEST(bound_bytes("op a T 1 > 10\nop b T 1 < a > 10~0\n") == 10);
  BOOST_TEST(bound_bytes("op a T 1 > 10\nop b V 1 < a > =0\nop c T 1 < b > 5\n") == 10 + 5);
}

// The alias may be all that is left of a: it can be sent at its own size.
BOOST_AUTO_TEST_CASE(a_smaller_alias_stands_for_its_buffer) {
  BOOST_TEST(bound_bytes("op a T 1 > 10\nop b V 1 < a > =0/4\nop c T 1 < b > 50\n") == 4 + 50);
}

// a's tensor is fetched: still there when c starts
BOOST_AUTO_TEST_CASE(what_is_fetched_is_held_to_the_end) {
  BOOST_TEST(bound_bytes("op a T 1 > 10*\nop b T 1 < ^a > 1\nop c T 1 < ^b > 20\n") == 10 + 20);
}

BOOST_AUTO_TEST_CASE(enough_memory_is_not_called_impossible) {
  BOOST_TEST(said(problem_of("var v 50\nvar w 50\nop a T 1 > 10\n", {60, 50})) == "");
}

// g: 40 of variables, 15 read and 5 made
BOOST_AUTO_TEST_CASE(a_group_is_larger_than_any_device) {
  const std::string graph = "var v 40 @g\nop a T 1 > 15\nop b T 1 < a > 5 @g\n";
  BOOST_TEST(said(problem_of(graph, {59, 59})) ==
             "group g alone needs 60 B, 40 B of it for variables, and d0, the largest device it "
             "may be on, has room for 59 B\n");
  BOOST_TEST(said(problem_of(graph, {59, 60})) == "");
}

BOOST_AUTO_TEST_CASE(variables_are_more_than_the_devices_they_may_be_on) {
  BOOST_TEST(said(problem_of("var v 30\nvar w 40\nvar x 40\nop a T 1\n", {50, 50})) ==
             "the variables alone need 110 B, more than all devices have together\n"
             "the variables come in pieces so large that they need 3 devices, and there are 2\n");
  BOOST_TEST(said(problem_of("var v 30 on=d0\nvar w 30 on=d0\nop a T 1\n", {50, 500})) ==
             "the variables that may only be on d0 need 60 B, and there is room for 50 B\n");
}

// 3 * 30 are less than 100, but no two fit one device. 20 fits beside 30.
BOOST_AUTO_TEST_CASE(variables_come_in_pieces_that_are_too_large) {
  BOOST_TEST(said(problem_of("var v 30\nvar w 30\nvar x 30\nop a T 1\n", {50, 50})) ==
             "the variables come in pieces so large that they need 3 devices, and there are 2\n");
  BOOST_TEST(said(problem_of("var v 30\nvar w 30\nvar x 20\nop a T 1\n", {50, 50})) == "");
}

// When c starts: 40, 40 and 40, each of which fits by itself with what it is made from
BOOST_AUTO_TEST_CASE(a_moment_needs_more_than_all_devices_have) {
  BOOST_TEST(
      said(problem_of("op a T 1 > 40\nop b T 1 < ^a > 40\nop c T 1 < ^b > 40\n"
                      "op d T 1 < a ^c\nop e T 1 < b ^c\n",
                      {59, 60})) ==
      "all devices together hold at least 120 B when op c starts, and their limits are 119 B "
      "together\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
