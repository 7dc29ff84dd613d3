// What one device needs for jobs with heads and tails, worked by hand.
#include "pardnn/plan/one_device.h"

#include <algorithm>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace pardnn {
namespace {

std::int64_t least_ns(std::vector<Job> jobs) {
  std::sort(jobs.begin(), jobs.end(), starts_before);
  return OneDevice().ns(jobs);
}

BOOST_AUTO_TEST_SUITE(one_device_suite)

BOOST_AUTO_TEST_CASE(no_job_takes_no_time) { BOOST_TEST(least_ns({}) == 0); }

BOOST_AUTO_TEST_CASE(a_job_takes_its_head_its_time_and_its_tail) {
  BOOST_TEST(least_ns({{3, 4, 5}}) == 12);
}

// Heads 0 and 9: idle from 2 to 9, then until 12
BOOST_AUTO_TEST_CASE(the_device_waits_for_heads) {
  BOOST_TEST(least_ns({{9, 3, 0}, {0, 2, 0}}) == 12);
}

// The one with the long tail first: 2 + 10; the other ends at 7
BOOST_AUTO_TEST_CASE(long_tails_go_first) { BOOST_TEST(least_ns({{0, 5, 0}, {0, 2, 10}}) == 12); }

// 0-4 the long one, 4-6 the late one with its tail until 16, the rest of the long one until 12
BOOST_AUTO_TEST_CASE(a_late_job_with_a_longer_tail_interrupts) {
  BOOST_TEST(least_ns({{0, 10, 1}, {4, 2, 10}}) == 16);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
