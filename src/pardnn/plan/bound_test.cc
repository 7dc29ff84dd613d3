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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
