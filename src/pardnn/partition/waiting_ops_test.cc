// Which op a device starts first as it and the channels become busy, worked by hand.
#include "pardnn/partition/waiting_ops.h"

#include <set>

#include <boost/test/unit_test.hpp>

namespace pardnn {
namespace {

constexpr OpId kA{0}, kB{1}, kC{2};

// A device, and the channels from device 1, that are free at these moments.
struct Story {
  WaitingOps waiting{2};
  std::int64_t free_ns = 0, channels_free_ns = 0;
  std::set<OpId> placed;

  void add(OpId op, std::int64_t priority, const InputsThere& there, std::int64_t penalty_ns = 0) {
    waiting.add(op, priority, there, penalty_ns, free_ns);
  }
  void add_behind_link(OpId op, std::int64_t priority, std::int64_t after_free_ns,
                       std::int64_t penalty_ns = 0) {
    add(op, priority, {channels_free_ns + after_free_ns, DeviceId{1}, after_free_ns}, penalty_ns);
  }
  // The op and the moment; the last op of `kC` plus one where nothing waits.
  std::pair<OpId, std::int64_t> head() {
    const auto is_placed = [&](OpId op) { return placed.contains(op); };
    const auto found =
        waiting.head(free_ns, [&](DeviceId) { return channels_free_ns; }, is_placed, is_placed);
    return found.has_value() ? std::pair(found->op, found->at_ns)
                             : std::pair(next(kC), kMaxQuantity);
  }
  void expect(OpId op, std::int64_t at_ns) {
    const auto [found, found_ns] = head();
    BOOST_TEST(index(found) == index(op));
    BOOST_TEST(found_ns == at_ns);
  }
};

BOOST_AUTO_TEST_SUITE(waiting_ops)

BOOST_AUTO_TEST_CASE(what_is_there_goes_by_priority_and_the_rest_by_its_moment) {
  Story story;
  story.add(kA, 1, {.at_ns = 7});
  story.add(kB, 9, {.at_ns = 8});
  story.expect(kA, 7);  // nothing is there: the earliest
  story.free_ns = 8;
  story.expect(kB, 8);  // both are
  story.waiting.pop();
  story.expect(kA, 8);
}

BOOST_AUTO_TEST_CASE(a_penalty_makes_an_op_later) {
  Story story;
  story.add(kA, 9, {.at_ns = 2}, 5);
  story.add(kB, 1, {.at_ns = 3});
  story.expect(kB, 3);  // before 2 + 5
  story.free_ns = 10;
  story.add(kC, 9, {.at_ns = 0}, 1);
  story.expect(kB, 10);
  story.waiting.pop();
  story.expect(kC, 11);
  story.waiting.pop();
  story.expect(kA, 15);
}

// Of what waits for the link, b needs 2 and c 6 once its channels are free.
BOOST_AUTO_TEST_CASE(busy_channels_make_all_that_waits_for_them_later) {
  Story story;
  story.free_ns = 10;
  story.add(kA, 1, {.at_ns = 4});
  story.channels_free_ns = 4;
  story.add_behind_link(kB, 5, 2);
  story.add_behind_link(kC, 9, 6);
  story.expect(kC, 10);  // 4 + 6 is there at 10
  story.channels_free_ns = 5;
  story.expect(kB, 10);  // 5 + 2 is, 5 + 6 is not
  story.channels_free_ns = 20;
  story.expect(kA, 10);  // neither
  story.placed.insert(kA);
  story.expect(kB, 22);  // nothing is there: the earliest
  story.free_ns = 26;
  story.expect(kC, 26);  // 20 + 6 is again
}

// Its inputs are there at 4 + 2, before the device is free; only the op counts as later.
BOOST_AUTO_TEST_CASE(a_penalty_does_not_make_inputs_late) {
  Story story;
  story.free_ns = 10;
  story.channels_free_ns = 4;
  story.add_behind_link(kA, 1, 2, 5);
  story.expect(kA, 15);
  story.channels_free_ns = 20;
  story.expect(kA, 27);  // 20 + 2 + 5
  story.free_ns = 30;
  story.expect(kA, 35);
}

BOOST_AUTO_TEST_CASE(what_was_placed_is_forgotten) {
  Story story;
  story.add(kA, 1, {.at_ns = 0});
  story.add_behind_link(kA, 1, 0);
  story.placed.insert(kA);
  story.expect(next(kC), kMaxQuantity);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
