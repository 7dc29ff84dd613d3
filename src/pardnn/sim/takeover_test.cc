// When an output takes a buffer over, and when it may not (rule M4b). A byte takes 1 ns.
#include <boost/test/unit_test.hpp>

#include "pardnn/sim/story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(takeover)

// a(10) -> b(5), which may write over a -> c(5)
BOOST_AUTO_TEST_CASE(an_output_takes_over_the_buffer_of_an_input_that_nothing_else_needs) {
  Story story(
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op c T 5 < b > 1\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,20), c 1 [15,20)");
  BOOST_TEST(story.peaks() == "d0=9@15 d1=0@0");
}

// The buffer goes from a to b to c to d
BOOST_AUTO_TEST_CASE(a_buffer_is_handed_on_as_often_as_it_is_free) {
  Story story(
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op c T 5 < b > 8~0\n"
      "op d T 5 < c > 8~0*\n"
      "op x T 7\n");
  BOOST_REQUIRE(story.run("d0: a b c d x"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,32)");
}

// r reads a after b has started
BOOST_AUTO_TEST_CASE(a_buffer_that_another_op_still_reads_is_not_taken_over) {
  const std::string graph =
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op r T 5 < a > 1\n";
  Story story(graph);
  BOOST_REQUIRE(story.run("d0: a b r"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,20), b 8 [10,15), r 1 [15,20)");
  // The other way round r has finished when b starts.
  Story in_time(graph);
  BOOST_REQUIRE(in_time.run("d0: a r b"));
  BOOST_TEST(in_time.buffers("d0") == "a 8 [0,20), r 1 [10,15)");
}

// r reads an alias of a after b has started
BOOST_AUTO_TEST_CASE(a_buffer_whose_alias_is_still_read_is_not_taken_over) {
  Story story(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0\n"
      "op b T 5 < a > 8~0\n"
      "op r T 5 < v > 1\n");
  BOOST_REQUIRE(story.run("d0: a v b r"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,21), b 8 [11,16), r 1 [16,21)");
}

// b makes an alias of a besides, which r reads later
BOOST_AUTO_TEST_CASE(
    a_buffer_of_which_the_op_itself_makes_an_alias_that_is_read_is_not_taken_over) {
  Story story(
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0 =0\n"
      "op r T 5 < b:1 > 1\n");
  BOOST_REQUIRE(story.run("d0: a b r"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,20), b 8 [10,15), r 1 [15,20)");
}

// a goes to d1 for 8 ns, [10,18)
BOOST_AUTO_TEST_CASE(a_buffer_that_is_being_sent_is_not_taken_over) {
  const std::string graph =
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op r T 5 < a\n"
      "op x T 8\n";
  Story pending(graph);
  BOOST_REQUIRE(pending.run("d0: a b x | d1: r"));
  BOOST_TEST(pending.buffers("d0") == "a 8 [0,18), b 8 [10,15)");
  // One that arrives at the instant at which b starts has arrived.
  Story arrived(graph);
  BOOST_REQUIRE(arrived.run("d0: a x b | d1: r"));
  BOOST_TEST(arrived.start("b") == 18);
  BOOST_TEST(arrived.buffers("d0") == "a 8 [0,23)");
}

// An alias of a goes to d1 for 6 ns, [11,17)
BOOST_AUTO_TEST_CASE(a_buffer_whose_alias_is_being_sent_is_not_taken_over) {
  Story story(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0/6\n"
      "op b T 5 < a > 8~0\n"
      "op r T 5 < v\n");
  BOOST_REQUIRE(story.run("d0: a v b | d1: r"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,17), b 8 [11,16)");
}

BOOST_AUTO_TEST_CASE(a_fetched_buffer_is_not_taken_over) {
  Story story(
      "op a T 10 > 8*\n"
      "op b T 5 < a > 8~0\n");
  BOOST_REQUIRE(story.run("d0: a b"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,15), b 8 [10,15)");
  Story alias(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0*\n"
      "op b T 5 < a > 8~0\n");
  BOOST_REQUIRE(alias.run("d0: a v b"));
  BOOST_TEST(alias.buffers("d0") == "a 8 [0,16), b 8 [11,16)");
}

// The read op's output is an alias of the variable
BOOST_AUTO_TEST_CASE(a_variables_buffer_is_not_taken_over_but_its_copy_is) {
  const std::string graph =
      "var w 8 @g\n"
      "op r Read 1 < w > =0 @g\n"
      "op b T 5 < r > 8~0\n";
  Story home(graph);
  BOOST_REQUIRE(home.run("d0: w r b"));
  BOOST_TEST(home.buffers("d0") == "w 8 [0,6), b 8 [1,6)");
  Story away(graph);
  BOOST_REQUIRE(away.run("d0: w r | d1: b"));
  BOOST_TEST(away.buffers("d1") == "r' 8 [1,14)");
}

BOOST_AUTO_TEST_CASE(an_every_buffer_is_not_taken_over) {
  Story story(
      "op x Input 0 > 8 every=1\n"
      "op b T 5 < x > 8~0\n");
  BOOST_REQUIRE(story.run("d0: b"));
  BOOST_TEST(story.buffers("d0") == "b 8 [0,5), x* 8 [0,5)");
}

// 7 and 8 bytes differ, unless both are rounded up to 16
BOOST_AUTO_TEST_CASE(sizes_must_be_equal_after_rounding) {
  const std::string graph =
      "op a T 10 > 7\n"
      "op b T 5 < a > 8~0\n";
  Story exact(graph);
  BOOST_REQUIRE(exact.run("d0: a b"));
  BOOST_TEST(exact.buffers("d0") == "a 7 [0,15), b 8 [10,15)");
  Story rounded(graph, StoryMachine{.granularity_bytes = 16}.build());
  BOOST_REQUIRE(rounded.run("d0: a b"));
  BOOST_TEST(rounded.buffers("d0") == "a 16 [0,15)");
}

// v is an alias of a with another size: what counts is the buffer behind it, 8 bytes
BOOST_AUTO_TEST_CASE(the_size_of_the_buffer_counts_and_not_that_of_the_alias) {
  Story story(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0/4\n"
      "op b T 5 < v > 8~0\n"
      "op c T 10 > 8\n"
      "op w View 1 < c > =0/4\n"
      "op d T 5 < w > 4~0\n");
  BOOST_REQUIRE(story.run("d0: a v b c w d"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,16), c 8 [16,32), d 4 [27,32)");
}

// b reads a through both inputs
BOOST_AUTO_TEST_CASE(an_op_that_reads_a_buffer_twice_does_not_take_it_over) {
  Story twice(
      "op a T 10 > 8\n"
      "op b Add 5 < a a > 8~0\n");
  BOOST_REQUIRE(twice.run("d0: a b"));
  BOOST_TEST(twice.buffers("d0") == "a 8 [0,15), b 8 [10,15)");
  Story by_alias(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0\n"
      "op b Add 5 < a v > 8~0\n");
  BOOST_REQUIRE(by_alias.run("d0: a v b"));
  BOOST_TEST(by_alias.buffers("d0") == "a 8 [0,16), b 8 [11,16)");
}

// Both outputs would take a's buffer; the first gets it, the second is as if it had not asked
BOOST_AUTO_TEST_CASE(a_buffer_is_taken_once_by_the_first_output) {
  Story story(
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0 8~0\n"
      "op c T 5 < b:1\n");
  BOOST_REQUIRE(story.run("d0: a b c"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,15), b:1 8 [10,20)");
  Story second(
      "op a T 10 > 8\n"
      "op b T 5 < a > 7~0 8~0\n"
      "op c T 5 < b:1\n");
  BOOST_REQUIRE(second.run("d0: a b c"));
  BOOST_TEST(second.buffers("d0") == "a 8 [0,20), b 7 [10,15)");
}

// b on d1 writes over the copy of a; that a is read and fetched at home does not matter there
BOOST_AUTO_TEST_CASE(a_copy_is_taken_over_like_an_own_buffer) {
  Story story(
      "op a T 10 > 8*\n"
      "op b T 5 < a > 8~0\n"
      "op c T 5 < b\n"
      "op x T 90 < a\n");
  BOOST_REQUIRE(story.run("d0: a x | d1: b c"));
  // a [10,18) to d1; b [18,23); c [23,28)
  BOOST_TEST(story.buffers("d0") == "a 8 [0,100)");
  BOOST_TEST(story.buffers("d1") == "a' 8 [10,28)");
}

// An alias made on the copy is fetched, or is on its way to d2
BOOST_AUTO_TEST_CASE(a_copy_that_is_still_needed_is_not_taken_over) {
  Story fetched(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0*\n"
      "op b T 5 < a > 8~0\n");
  BOOST_REQUIRE(fetched.run("d0: a | d1: v b"));
  BOOST_TEST(fetched.buffers("d1") == "a' 8 [10,24), b 8 [19,24)");
  Story sent(
      "op a T 10 > 8\n"
      "op v View 1 < a > =0\n"
      "op b T 5 < a > 8~0\n"
      "op r T 1 < v\n",
      StoryMachine{.devices = 3}.build());
  BOOST_REQUIRE(sent.run("d0: a | d1: v b | d2: r"));
  // v [18,19), sent [19,27)
  BOOST_TEST(sent.buffers("d1") == "a' 8 [10,27), b 8 [19,24)");
}

// b takes over a, and b is sent: the buffer lives until b has arrived
BOOST_AUTO_TEST_CASE(a_buffer_taken_over_lives_on_for_the_new_output) {
  Story story(
      "op a T 10 > 8\n"
      "op b T 5 < a > 8~0\n"
      "op r T 5 < b\n");
  BOOST_REQUIRE(story.run("d0: a b | d1: r"));
  BOOST_TEST(story.buffers("d0") == "a 8 [0,23)");
  BOOST_TEST(story.peaks() == "d0=8@0 d1=8@15");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
