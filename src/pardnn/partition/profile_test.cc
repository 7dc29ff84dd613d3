// The profile of bytes over time and the Fenwick tree against plain arrays.
#include "pardnn/partition/profile.h"

#include <algorithm>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/partition/fenwick.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(profile)

// moment   0   1   2   3   4
// +5       xxxxxxxxx
// +3           xxxxxxxxx
BOOST_AUTO_TEST_CASE(overlapping_ranges_add_up) {
  Profile profile(5);
  profile.add(0, 3, 5);
  profile.add(1, 4, 3);
  BOOST_TEST(profile.at(0) == 5);
  BOOST_TEST(profile.at(1) == 8);
  BOOST_TEST(profile.at(3) == 3);
  BOOST_TEST(profile.at(4) == 0);
  BOOST_TEST(profile.most(3, 5) == 3);
  BOOST_TEST(profile.fullest() == 1u);  // the first of two
}

BOOST_AUTO_TEST_CASE(one_moment_is_enough) {
  Profile profile(1);
  profile.add(0, 1, 7);
  profile.add(0, 1, -2);
  BOOST_TEST(profile.at(profile.fullest()) == 5);
}

BOOST_AUTO_TEST_CASE(it_agrees_with_a_plain_array) {
  Random random(1);
  for (const std::uint32_t size : {2u, 7u, 64u, 100u}) {
    Profile profile(size);
    Fenwick sums(size);
    std::vector<std::int64_t> plain(size, 0), plain_sums(size, 0);
    for (int step = 0; step < 300; ++step) {
      const std::uint32_t first = random.below(size), last = first + 1 + random.below(size - first);
      const std::int64_t bytes = random.between(-50, 100);
      profile.add(first, last, bytes);
      for (std::uint32_t n = first; n < last; ++n) plain[n] += bytes;
      sums.add(first, bytes);
      plain_sums[first] += bytes;
      const std::uint32_t a = random.below(size), b = a + 1 + random.below(size - a);
      BOOST_TEST(profile.most(a, b) == *std::max_element(plain.begin() + a, plain.begin() + b));
      std::int64_t sum = 0;
      for (std::uint32_t n = a; n < b; ++n) sum += plain_sums[n];
      BOOST_TEST(sums.sum(a, b) == sum);
      const auto fullest = std::max_element(plain.begin(), plain.end()) - plain.begin();
      if (plain[static_cast<std::size_t>(fullest)] > 0) {  // else moments past the end, at 0, lead
        BOOST_TEST(profile.fullest() == static_cast<std::size_t>(fullest));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
