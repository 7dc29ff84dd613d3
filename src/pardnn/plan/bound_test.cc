// The lower bound on small graphs, each worked by hand.
#include "pardnn/plan/bound.h"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/io/pdg_reader.h"

namespace pardnn {
namespace {

std::int64_t bound(const std::string& graph, const Machine& machine) {
  return lower_bound_ns(Problem(read_pdg("pdg 1\n" + graph, "story"), machine));
}

Machine devices(std::size_t count) {
  return Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(count, 1000)});
}

Machine gpu_and_cpu() {
  Machine machine = Machine::uniform({.capacity_bytes = {1000, 1000}, .kind = "gpu"});
  machine.devices[DeviceId{1}].kind = "cpu";
  return machine;
}

BOOST_AUTO_TEST_SUITE(bound_suite)

// a(10) -> b(20), c(1)
BOOST_AUTO_TEST_CASE(it_is_at_least_the_longest_path) {
  BOOST_TEST(bound("op a T 10 > 4\nop b T 20 < a\nop c T 1\n", devices(2)) == 30);
}

// 10 + 11 + 12 = 33 on two devices: 16.5
BOOST_AUTO_TEST_CASE(it_is_at_least_the_work_over_the_devices_rounded_up) {
  BOOST_TEST(bound("op a T 10\nop b T 11\nop c T 12\n", devices(2)) == 17);
}

// 6 + 7 in one group
BOOST_AUTO_TEST_CASE(it_is_at_least_what_one_unit_takes) {
  BOOST_TEST(bound("op a T 6 @g\nop b T 7 @g\n", devices(4)) == 13);
}

// 5 + 6 can run on d1 only
BOOST_AUTO_TEST_CASE(it_is_at_least_what_only_one_device_can_do) {
  BOOST_TEST(bound("op a T 5 on=d1\nop b T 6 on=d1\nop c T 1\n", devices(4)) == 11);
}

// Four ops of 2 on the gpu or 6 on the cpu: with weights 3/4 and 1/4 each counts 1.5, together 6.
// (Three on the gpu and one on the cpu is a plan of 6.) Equal weights would say 4.
BOOST_AUTO_TEST_CASE(unequal_devices_are_weighed_by_their_speed) {
  const std::string four = "kind gpu cpu\nop a T 2,6\nop b T 2,6\nop c T 2,6\nop d T 2,6\n";
  BOOST_TEST(bound(four, gpu_and_cpu()) == 6);
}

// a can run on the gpu only; zero-cost ops last a nanosecond
BOOST_AUTO_TEST_CASE(costs_are_those_of_the_kinds_allowed) {
  BOOST_TEST(bound("kind gpu cpu\nop a T 9,-\nop b T 0,0 < ^a\n", gpu_and_cpu()) == 10);
  BOOST_TEST(bound("op x In 9 every=1\n", devices(2)) == 0);
}

// A byte takes 1 ns.
Machine slow_devices() {
  return Machine::uniform({.capacity_bytes = {1000, 1000}, .bytes_per_second = 1'000'000'000});
}

//   a(10) --.
//            c(5)     apart, what a or b makes has to cross
//   b(20) --'
//
// 100 bytes: if b is not beside c, c starts at 20 + 100; if a is not, at 10 + 100; if both are, one
// device does 10 + 20 first. The least is 30, the longest path only 20.
// 2 bytes: with a apart, c can start at 20, when b is done and a's 2 bytes have been there
// since 12.
BOOST_AUTO_TEST_CASE(what_is_waited_for_was_made_beside_or_has_crossed) {
  BOOST_TEST(bound("op a T 10 > 100\nop b T 20 > 100\nop c T 5 < a b\n", slow_devices()) == 35);
  BOOST_TEST(bound("op a T 10 > 2\nop b T 20 > 2\nop c T 5 < a b\n", slow_devices()) == 25);
}

// The same from the end: b and c wait for a, and 10 + 20 + 5 on one device is less than 100 bytes.
BOOST_AUTO_TEST_CASE(what_follows_is_bounded_like_what_is_waited_for) {
  BOOST_TEST(bound("op a T 10 > 100\nop b T 20 < a\nop c T 5 < a\n", slow_devices()) == 35);
}

// Pinned apart, 7 bytes cross for certain; two tensors of one op go one after the other.
BOOST_AUTO_TEST_CASE(what_must_be_apart_crosses) {
  BOOST_TEST(bound("op a T 10 > 7 on=d0\nop b T 20 < a on=d1\n", slow_devices()) == 37);
  BOOST_TEST(bound("op a T 10 > 7 4 on=d0\nop b T 20 < a a:1 on=d1\n", slow_devices()) == 41);
}

//   a(10) -> each of b c d e f g (10)    together 60 behind a, 30 on each of two devices
BOOST_AUTO_TEST_CASE(work_between_a_head_and_the_end_is_shared) {
  std::string graph = "op a T 10 > 0\n";
  for (const char* key : {"b", "c", "d", "e", "f", "g"}) {
    graph += std::string("op ") + key + " T 10 < a\n";
  }
  // A signal takes at least 1 ns (rule T2): one device does a and three of them by 40, the other
  // three by 41; four and two would be 50.
  BOOST_TEST(bound(graph, slow_devices()) >= 40);
  BOOST_TEST(bound(graph, slow_devices()) <= 41);
}

// Links of `crossing_ns` for any tensor of a byte, 1 ns of it for the byte.
Machine apart(std::size_t count, std::int64_t crossing_ns) {
  return Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(count, 1000),
                           .bytes_per_second = 1'000'000'000,
                           .overhead_ns = crossing_ns - 1});
}

// Three branches between a and d, each 10 long. Elsewhere a branch takes 6 + 10 + 6.
//
//     a(1) > b(10), c(10), e(10) > d(1)
//
// With a and d together: 1 + 22 + 1, two of the branches beside them. With a and d apart a third
// branch elsewhere takes as long, and three on two devices longer: at least (30 + 6 + 6) / 2 = 21
// between a and d. So 23, while all branches counted by themselves say 1 + 10 + 6 + 1 = 18.
BOOST_AUTO_TEST_CASE(what_lies_between_a_fork_and_a_join_comes_and_goes) {
  const std::string three =
      "op a T 1 > 1\nop b T 10 < a > 1\nop c T 10 < a > 1\nop e T 10 < a > 1\n"
      "op d T 1 < b c e\n";
  BOOST_TEST(bound(three, apart(4, 6)) == 23);
}

// a is on c's device for certain, so b is worth sending away: max(10, 10 + 6) + 1. And a, d and c
// one after another, while b comes and goes.
BOOST_AUTO_TEST_CASE(the_unit_of_an_op_is_on_its_device) {
  BOOST_TEST(bound("op a T 10 @g\nop b T 10 > 1\nop c T 1 < ^a b @g\n", apart(2, 6)) == 17);
  BOOST_TEST(bound("op a T 10 @g\nop b T 1 < ^a\nop c T 10 < ^b @g\nop d T 9 @g\n", apart(2, 6)) ==
             29);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
