// The simple rows, worked by hand, and what the runner does with every row's answer.
#include "pardnn/partition/rows.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/partition/chunks.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/fold.h"
#include "pardnn/partition/one_device.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(rows_)

// The second device takes 4 where the first takes 9; c may run on the first alone.
BOOST_AUTO_TEST_CASE(one_device_is_the_fastest_that_may_run_most) {
  Machine machine = StoryMachine{.kind = "slow"}.build();
  machine.devices[DeviceId{1}].kind = "fast";
  const PlannerStory both("kind slow fast\nop a T 9,4 > 1\nop b T 9,4 < a\n", machine);
  BOOST_TEST(both.text(one_device(both.problem, {})) == "| a b");
  const PlannerStory pinned("kind slow fast\nop a T 9,4 > 1\nop b T 9,4 < a > 1\nop c T 9,- < b\n",
                            machine);
  BOOST_TEST(pinned.text(one_device(pinned.problem, {})) == "a b c | ");
}

// Six alike: three and three. The middle of c is at 5/12, that of d at 7/12.
BOOST_AUTO_TEST_CASE(chunks_cut_the_order_into_even_pieces) {
  std::string graph = "op a T 5 > 10\n";
  for (char key = 'b'; key <= 'f'; ++key) {
    graph += std::string("op ") + key + " T 5 < " + static_cast<char>(key - 1) + " > 10\n";
  }
  const PlannerStory story(graph);
  BOOST_TEST(story.text(chunks(story.problem, {})) == "a b c | d e f");
}

// All bytes are a's, all the time is shared: a's middle is at (1/6 + 1/2) / 2 = 1/3, b's at
// (1/2 + 1) / 2 = 3/4.
BOOST_AUTO_TEST_CASE(chunks_weigh_time_and_bytes_alike) {
  const PlannerStory story("op a T 5 > 60\nop b T 5 < a > 0\nop c T 5 < b > 0\n");
  BOOST_TEST(story.text(chunks(story.problem, {})) == "a | b c");
}

// The update comes last, but w's unit lies where its first op lies.
BOOST_AUTO_TEST_CASE(chunks_place_units_whole) {
  const PlannerStory story(
      "var w 1 @w\n"
      "op r Read 5 < w > =0 @w\n"
      "op m T 5 < r > 1\n"
      "op g T 5 < m > 1\n"
      "op u Update 5 < g !w ^r @w\n");
  // Units by first op: w (10 of 20 ns, 1 of 3 bytes), m, g. Middles: 5/24.., then
  // m: (12.5/20 + 1.5/3) / 2 = 0.5625, g: (17.5/20 + 2.5/3) / 2.
  BOOST_TEST(story.text(chunks(story.problem, {})) == "r u | m g");
}

BOOST_AUTO_TEST_CASE(chunks_follow_the_programs_order_where_there_is_one) {
  const PlannerStory story(
      "op a T 5 > 1 at=4\nop b T 5 > 1 at=3\nop c T 5 > 1 at=2\nop d T 5 > 1 at=1\n");
  BOOST_TEST(story.text(chunks(story.problem, {})) == "d c | b a");
}

// a first; b there at 3, on d1 after 5 more; c then starts at 7 on d0 or at 3 + 1 on d1.
BOOST_AUTO_TEST_CASE(etf_takes_what_can_start_first) {
  const PlannerStory story(
      "op a T 3 > 1\n"
      "op b T 4 < a\n"
      "op c T 4 < a\n");
  BOOST_TEST(story.text(etf(story.problem, {})) == "a b | c");
  const PlannerStory far("op a T 3 > 5\nop b T 4 < a\nop c T 4 < a\n");
  BOOST_TEST(far.text(etf(far.problem, {})) == "a b c | ");  // 3 + 5 is later than 7
}

// x, y and z leave a on one channel one after another: there at 1 + 2, + 4 ... Without contention
// all are there at 3.
BOOST_AUTO_TEST_CASE(etf_counts_channels_that_are_taken) {
  const std::string graph =
      "op a T 1 > 2 2 2\n"
      "op x T 9 < a:0\n"
      "op y T 3 < a:1\n"
      "op z T 3 < a:2\n";
  const PlannerStory story(graph);
  // x on d0 [1,10); y on d1 at 3 to 6; z on d1 when its own transfer, after y's, is there: at 6.
  BOOST_TEST(story.text(etf(story.problem, {})) == "a x | y z");
}

BOOST_AUTO_TEST_CASE(etf_keeps_a_group_where_its_first_op_went) {
  const PlannerStory story(
      "op a T 3 > 1\n"
      "op b T 9 < a @g\n"
      "op c T 9 < a @g\n");
  const Proposal proposal = etf(story.problem, {});
  BOOST_TEST((proposal.placement[story.unit("b")] == proposal.placement[story.unit("c")]));
}

// Of 40 bytes each device may be given half: a and b fill the first, the others go to the second.
BOOST_AUTO_TEST_CASE(etf_can_share_out_bytes) {
  const PlannerStory story(
      "op a T 1 > 10\nop b T 1 < a > 10\nop c T 1 < b > 10\nop d T 1 < c > 10\n");
  const auto priority = bottom_levels(story.problem, story.times);
  BOOST_TEST(story.text(earliest_task_first(story.problem, story.times, priority,
                                            {.bytes_per_mille = 1000})) == "a b | c d");
  BOOST_TEST(story.text(earliest_task_first(story.problem, story.times, priority, {})) ==
             "a b c d | ");
}

// d and f are one group and wait on both devices; when the first of them takes the room of one, the
// other must wait there still. Without that one of the seven ops is lost.
BOOST_AUTO_TEST_CASE(etf_with_shares_places_groups_whose_ops_wait_already) {
  const PlannerStory story(
      "op a T 9 > 30\n"
      "op b T 8 > 40\n"
      "op c T 7 > 50\n"
      "op d T 6 > 30 @g\n"
      "op e T 2 > 10\n"
      "op f T 2 > 40 @g\n"
      "op g T 4 > 40 @h\n");
  const auto priority = bottom_levels(story.problem, story.times);
  const Proposal proposal =
      earliest_task_first(story.problem, story.times, priority, {.bytes_per_mille = 500});
  BOOST_TEST(proposal.order.size() == 7u);
  BOOST_TEST((proposal.placement[story.unit("d")] == proposal.placement[story.unit("f")]));
}

// fwd1 fwd2 loss bwd2 bwd1: each backward op reads what its layer saved.
BOOST_AUTO_TEST_CASE(a_fold_lays_backward_ops_beside_their_layer) {
  const PlannerStory story(
      "var m 4 @m\n"
      "op f1 T 10 > 8 ph=f\n"
      "op f2 T 10 < f1 > 8 ph=f\n"
      "op loss T 10 < f2 > 8 ph=f\n"
      "op g2 T 10 < loss f2 > 8 ph=b\n"
      "op g1 T 10 < g2 f1 > 8 ph=b\n"
      "op old Read 1 < m > =0 @m ph=u\n"
      "op u1 Update 1 < g1 old !m @m ph=u\n");
  Trial trial(story.problem);
  const FoldedStep fold = fold_step(story.problem, story.times, trial);
  std::string order;
  for (const UnitId unit : fold.units) {
    for (const OpId op : story.problem.ops(unit)) {
      order += (order.empty() ? "" : " ") + std::string(story.problem.graph().key(op));
    }
  }
  BOOST_TEST(order == "f1 g1 old u1 f2 g2 loss");
}

// 60 + 60 bytes of weights, activations besides; neither device holds all, and a plain cut puts
// the backward pass far from what it reads.
BOOST_AUTO_TEST_CASE(auto_fits_where_chunks_do_not) {
  const auto graph = find_family("chain")->make(120, 1);
  Machine one = StoryMachine{.devices = 1, .capacity_bytes = std::int64_t{1} << 50}.build();
  const std::int64_t need =
      make_plan(Problem(graph, one), "one-device", {}).prediction.peaks[DeviceId{0}].bytes;
  const Problem two(graph, StoryMachine{.capacity_bytes = need * 6 / 10}.build());
  BOOST_TEST(!make_plan(two, "chunks", {}).score.fits());
  const Plan plan = make_plan(two, "auto", {});
  BOOST_TEST(plan.score.fits());
  BOOST_TEST(faults(two, plan) == "");
}

// Two workers at 0.6 of what one needs, for every kind of network.
BOOST_AUTO_TEST_CASE(two_devices_at_six_tenths_of_the_need_are_enough) {
  for (const char* name :
       {"chain", "diamonds", "residual", "inception", "word-rnn", "transformer"}) {
    const auto graph = find_family(name)->make(400, 1);
    Machine one = StoryMachine{.devices = 1, .capacity_bytes = std::int64_t{1} << 50}.build();
    const std::int64_t need =
        make_plan(Problem(graph, one), "one-device", {}).prediction.peaks[DeviceId{0}].bytes;
    const Problem two(graph, StoryMachine{.capacity_bytes = need * 6 / 10}.build());
    BOOST_TEST_CONTEXT(name) { BOOST_TEST(make_plan(two, "auto", {}).score.fits()); }
  }
}

BOOST_AUTO_TEST_CASE(auto_is_never_worse_than_a_row) {
  for (const char* name : {"inception", "experts", "grid"}) {
    const Problem problem(find_family(name)->make(200, 2), StoryMachine{.devices = 4}.build());
    const Score best = make_plan(problem, "auto", {}).score;
    for (const Row& row : rows()) {
      BOOST_TEST_CONTEXT(name << " " << row.name) {
        BOOST_TEST((best <= make_plan(problem, row.name, {}).score));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(names_are_those_of_the_table_and_auto) {
  BOOST_TEST(is_algorithm("auto"));
  for (const Row& row : rows()) BOOST_TEST(is_algorithm(row.name));
  BOOST_TEST(!is_algorithm("Auto"));
  BOOST_TEST(algorithm_names().size() == rows().size() + 1);
}

// d0 has no link from d1: whatever a row would like, everything has to stay on one device.
BOOST_AUTO_TEST_CASE(a_plan_needs_only_links_that_are_there) {
  Machine machine = StoryMachine{}.build();
  for (auto& link : machine.links) link.reset();
  const PlannerStory story("op a T 5 > 1\nop b T 5 < a > 1\nop c T 5 < b\n", machine);
  for (const std::string_view name : algorithm_names()) {
    BOOST_TEST_CONTEXT(name) {
      const Plan plan = story.plan(name);
      BOOST_TEST(plan.prediction.transfers.empty());
      BOOST_TEST(faults(story.problem, plan) == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_stopped_run_still_answers) {
  const std::atomic<bool> stop = true;
  Run run;
  run.stop = &stop;
  const Problem problem(find_family("chain")->make(100, 1), StoryMachine{}.build());
  BOOST_TEST(faults(problem, make_plan(problem, "auto", run)) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
