#include "pardnn/base/ahead.h"

#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace pardnn {
namespace {

using Taken = std::vector<std::pair<std::size_t, int>>;

BOOST_AUTO_TEST_SUITE(ahead)

// Early tasks are the longest, so later ones are done first; they are still taken in order.
BOOST_AUTO_TEST_CASE(answers_are_taken_in_order_whoever_is_done_first) {
  const std::vector<int> lengths = {30'000, 20'000, 3, 2, 1};
  const auto sum_to = [&](std::size_t n) {
    std::vector<int> numbers(static_cast<std::size_t>(lengths[n]), 1);
    return std::accumulate(numbers.begin(), numbers.end(), 0);
  };
  Taken taken;
  done_ahead(lengths.size(), sum_to, [&](std::size_t n, int sum) { taken.emplace_back(n, sum); });
  const Taken expected = {{0, 30'000}, {1, 20'000}, {2, 3}, {3, 2}, {4, 1}};
  BOOST_TEST((taken == expected));
}

BOOST_AUTO_TEST_CASE(no_task_is_no_answer) {
  done_ahead(
      0, [](std::size_t n) { return n; },
      [](std::size_t, std::size_t) { BOOST_ERROR("there was nothing to take"); });
}

BOOST_AUTO_TEST_CASE(a_task_that_throws_ends_it_after_the_answers_before_it) {
  const auto task = [](std::size_t n) {
    if (n == 2) throw std::runtime_error("the third");
    return n;
  };
  std::vector<std::size_t> taken;
  const auto take = [&](std::size_t n, std::size_t) { taken.push_back(n); };
  BOOST_CHECK_THROW(done_ahead(50, task, take), std::runtime_error);
  BOOST_TEST(taken == (std::vector<std::size_t>{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_take_that_throws_ends_it_too) {
  const auto take = [](std::size_t n, std::size_t) {
    if (n == 1) throw std::runtime_error("enough");
  };
  BOOST_CHECK_THROW(done_ahead(50, [](std::size_t n) { return n; }, take), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
