// Memory repair and its books, worked by hand and against the simulator.
#include "pardnn/partition/repair.h"

#include <algorithm>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/graph/generate.h"
#include "pardnn/partition/books.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/planner_story_test.h"
#include "pardnn/partition/transfers.h"

namespace pardnn {
namespace {

Machine small(std::int64_t capacity_bytes, std::size_t devices = 2) {
  return StoryMachine{.devices = devices, .capacity_bytes = capacity_bytes}.build();
}

// Repairs a placement under the order of ids; the score it reaches.
struct RepairStory {
  RepairStory(const PlannerStory& story, const std::string& placement) : best(story.problem) {
    const std::vector<OpId> order = id_order(story.problem.graph());
    proposal =
        repair_memory(best, story.times, "test", {story.placed(placement), order}, {}).proposal;
  }
  Best best;
  Proposal proposal;
};

BOOST_AUTO_TEST_SUITE(repair)

// v(60) and w(60) on a device of 100.
BOOST_AUTO_TEST_CASE(a_variable_moves_to_where_room_is) {
  const PlannerStory story("var v 60\nvar w 60\nop a T 1\n", small(100));
  const RepairStory repaired(story, "");
  BOOST_TEST(repaired.best.score().fits());
  // Equal in bytes and transfers: the least id.
  BOOST_TEST(index(repaired.proposal
                       .placement[story.problem.unit(*story.problem.graph().find_variable("v"))]) ==
             1u);
  BOOST_TEST(index(repaired.proposal
                       .placement[story.problem.unit(*story.problem.graph().find_variable("w"))]) ==
             0u);
}

// p(40) is kept for r while q(50) is made: 90 of 80. Only r holds p then, and m gave the transfer
// time to be over; q is held by its maker and by s.
BOOST_AUTO_TEST_CASE(the_last_reader_takes_the_buffer_along) {
  const PlannerStory story(
      "op p T 10 > 40\n"
      "op m T 100 < ^p\n"
      "op q T 10 < ^m > 50\n"
      "op r T 10 < p ^q > 1\n"
      "op s T 10 < q ^r > 1\n",
      small(80));
  const RepairStory repaired(story, "");
  BOOST_TEST(repaired.best.score().fits());
  BOOST_TEST(story.text(repaired.proposal.placement) == "p=0 m=0 q=0 r=1 s=0");
}

// Both devices are full: 60 of 100 each, and the 50 of x overflow d0 while a runs. Nothing has
// room.
BOOST_AUTO_TEST_CASE(a_move_that_would_overflow_its_target_is_skipped) {
  const PlannerStory story("var v 60\nvar w 60\nop a T 1 > 50*\n", small(100));
  const RepairStory repaired(story, "w=1");
  BOOST_TEST(!repaired.best.score().fits());
  BOOST_TEST(repaired.best.score().overflow_bytes == 10);
}

// y(50) leaves 50 of 100 on d1, where no z(60) can go and x(40) could. Largest first, x is the last
// to be asked: after 63 in vain it goes, after 64 it is not asked any more.
BOOST_AUTO_TEST_CASE(a_moment_is_given_up_after_64_candidates_in_vain) {
  const auto overflow = [](int large) {
    std::string graph = "var y 50\nvar x 40\n";
    for (int n = 0; n < large; ++n) graph += "var z" + std::to_string(n) + " 60\n";
    const PlannerStory story(graph + "op a T 1\n", small(100));
    return RepairStory(story, "y=1").best.score().overflow_bytes;
  };
  BOOST_TEST(overflow(63) == 63 * 60 - 100);
  BOOST_TEST(overflow(64) == 64 * 60 + 40 - 100);
}

// Three devices, all of them too small for what is there: moves go to and fro in the authors'
// programs; here a unit leaves a device at most once, so it ends.
BOOST_AUTO_TEST_CASE(no_unit_returns_to_a_device_it_left) {
  std::string graph;
  for (int n = 0; n < 9; ++n) graph += "var v" + std::to_string(n) + " 40\n";
  graph += "op a T 1\n";
  const PlannerStory story(graph, small(100, 3));
  const RepairStory repaired(story, "");
  // Two of 40 fit on each of the others; five stay on the first.
  BOOST_TEST(repaired.best.score().overflow_bytes == 5 * 40 - 100);
}

// Books made from a simulated schedule hold what the simulator counts, for every family.
BOOST_AUTO_TEST_CASE(the_books_agree_with_the_simulator) {
  for (const Family& family : families()) {
    if (family.name == "kinds") continue;
    const Problem problem(family.make(80, 2), small(1 << 20, 3));
    const Times times(problem);
    Random random(4);
    UnitPlacement placement(problem.units().size(), DeviceId{});
    for (const UnitId unit : problem.units()) {
      do {
        placement[unit] = DeviceId{random.below(3)};
      } while (!problem.is_allowed(unit, placement[unit]));
    }
    Trial trial(problem);
    const Timeline* timeline = trial.schedule({placement, id_order(problem.graph())});
    BOOST_REQUIRE(timeline != nullptr);
    const Table<DeviceId, Peak> peaks = trial.peaks();
    const Books books(problem, times, placement, *timeline, trial.lifetimes());
    for (const DeviceId device : problem.devices()) {
      const Profile& profile = books.profile(device);
      BOOST_TEST_CONTEXT(family.name << " d" << index(device)) {
        BOOST_TEST(profile.at(profile.fullest()) == peaks[device].bytes);
        BOOST_TEST(books.time_ns(profile.fullest()) == peaks[device].at_ns);
      }
    }
  }
}

// After any moves the books are what they would be if made anew for the same times.
BOOST_AUTO_TEST_CASE(moves_leave_the_books_as_if_made_anew) {
  for (const Family& family : families()) {
    if (family.name == "kinds") continue;
    const Problem problem(family.make(60, 7), small(1 << 20, 3));
    const Times times(problem);
    const UnitPlacement start(problem.units().size(), DeviceId{});
    UnitPlacement first(start);
    for (const UnitId unit : problem.units()) {
      if (!problem.is_allowed(unit, first[unit])) first[unit] = DeviceId{1};
    }
    Trial trial(problem);
    const Timeline* timeline = trial.schedule({first, id_order(problem.graph())});
    BOOST_REQUIRE(timeline != nullptr);
    const std::vector<Buffer> lifetimes = trial.lifetimes();
    Books moved(problem, times, first, *timeline, lifetimes);
    Random random(3);
    for (int n = 0; n < 40; ++n) {
      const UnitId unit{random.below(static_cast<std::uint32_t>(problem.units().size()))};
      const DeviceId to{random.below(3)};
      if (problem.is_allowed(unit, to)) moved.move(unit, to);
    }
    const Books anew(problem, times, moved.placement(), *timeline, lifetimes);
    for (const DeviceId device : problem.devices()) {
      BOOST_TEST_CONTEXT(family.name << " d" << index(device)) {
        std::size_t differ = 0;
        for (std::size_t n = 0; n < moved.moment_count(); ++n) {
          differ += moved.profile(device).at(n) != anew.profile(device).at(n);
        }
        BOOST_TEST(differ == 0u);
      }
    }
  }
}

// p(40) lies on d0 until r has read it; with r elsewhere a copy of it lies there, too.
BOOST_AUTO_TEST_CASE(undone_moves_leave_the_books_as_they_were) {
  const PlannerStory story("op p T 10 > 40\nop q T 10\nop r T 10 < p\nvar v 7\n", small(100));
  Trial trial(story.problem);
  const UnitPlacement start = story.placed("");
  const Timeline* timeline = trial.schedule({start, id_order(story.problem.graph())});
  Books books(story.problem, story.times, start, *timeline, trial.lifetimes());
  const auto most = [&](std::uint32_t device) { return books.profile(DeviceId{device}).most(); };
  BOOST_TEST(most(0) == 47);
  BOOST_TEST(most(1) == 0);
  const Books::Mark before = books.mark();
  books.move(story.unit("r"), DeviceId{1});
  const Books::Mark between = books.mark();
  books.move(story.problem.unit(*story.problem.graph().find_variable("v")), DeviceId{1});
  BOOST_TEST(most(0) == 40);
  BOOST_TEST(most(1) == 47);
  books.undo(between);
  BOOST_TEST(most(0) == 47);
  BOOST_TEST(most(1) == 40);
  books.undo(before);
  BOOST_TEST(most(0) == 47);
  BOOST_TEST(most(1) == 0);
  BOOST_TEST((books.placement() == start));
}

// u reads p and q from d0, where v reads p too; its own 8 bytes go back to v. On d1 it needs copies
// of p and q, 4 + 2, and sends 8; there w has a copy of q already.
BOOST_AUTO_TEST_CASE(transfers_count_once_per_value_and_device) {
  const PlannerStory story(
      "op p T 1 > 4\n"
      "op q T 1 > 2\n"
      "op u T 1 < p p q > 8\n"
      "op v T 1 < p u\n"
      "op w T 1 < q\n");
  const TransferChange away = transfer_change(story.problem, story.times, story.placed("w=1"),
                                              story.unit("u"), DeviceId{1});
  BOOST_TEST(away.added_ns == 4 + 8);
  BOOST_TEST(away.saved_ns == 0);
  const TransferChange back = transfer_change(story.problem, story.times, story.placed("w=1 u=1"),
                                              story.unit("u"), DeviceId{0});
  BOOST_TEST(back.added_ns == 0);
  BOOST_TEST(back.saved_ns == 4 + 8);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
