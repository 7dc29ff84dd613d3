// Plans made from plans made before.
#include "pardnn/partition/warm_start.h"

#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/graph/copy.h"
#include "pardnn/graph/generate.h"
#include "pardnn/io/old_plan_json.h"
#include "pardnn/io/plan_json.h"
#include "pardnn/partition/planner_story_test.h"

namespace pardnn {
namespace {

// A plan of one problem as a start for another.
struct Replanned {
  Replanned(const Problem& before, const Problem& now, const Run& run = {})
      : old_plan(make_plan(before, "auto", {})),
        old(read_old_plan(write_plan(before, old_plan), "old.json", now)),
        plan(plan_from(now, old, run)),
        moves(moves_from(now, old, plan)) {
    BOOST_TEST(faults(now, plan) == "");
  }
  Plan old_plan;
  OldPlan old;
  Plan plan;
  Moved moves;
};

// A copy of the graph in which one op takes twice as long.
std::shared_ptr<const Graph> with_slower(const Graph& graph, OpId slow) {
  GraphBuilder builder;
  copy_head(graph, builder);
  for (const GroupId group : graph.groups()) builder.group(graph.name(group), graph.pins(group));
  for (const VariableId variable : graph.variables()) builder.variable(spec_of(graph, variable));
  for (const OpId op : graph.ops()) {
    OpSpec spec = spec_of(graph, op);
    if (op == slow) {
      for (Cost& cost : spec.costs) cost = Cost::known(2 * cost.ns());
    }
    builder.op(spec);
  }
  return builder.build();
}

Machine machine_of(std::size_t devices) {
  constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
  return Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(devices, kPlenty),
                           .bytes_per_second = 50'000'000'000,
                           .overhead_ns = 1'000});
}

BOOST_AUTO_TEST_SUITE(warm_start)

BOOST_AUTO_TEST_CASE(nothing_moves_where_nothing_changed) {
  for (const char* family : {"inception", "word-rnn", "experts", "grid"}) {
    const Problem problem(find_family(family)->make(150, 1), machine_of(3));
    BOOST_TEST_CONTEXT(family) {
      const Replanned again(problem, problem);
      BOOST_TEST(again.moves.moved == 0u);
      BOOST_TEST(again.moves.added == 0u);
      BOOST_TEST(again.moves.gone == 0u);
      BOOST_TEST((again.plan.score <= again.old_plan.score));
      // A search may go on from it, and is never worse either.
      Run searched;
      searched.steps = 5;
      BOOST_TEST((Replanned(problem, problem, searched).plan.score <= again.old_plan.score));
    }
  }
}

BOOST_AUTO_TEST_CASE(few_ops_move_when_one_op_becomes_slower) {
  const auto graph = find_family("inception")->make(300, 1);
  const Problem before(graph, machine_of(3));
  const auto doubled = with_slower(*graph, OpId{40});
  const Problem now(doubled, machine_of(3));
  const Replanned again(before, now);
  BOOST_TEST(again.moves.matched == again.old.op_count);
  BOOST_TEST(again.moves.moved * 10 <= again.moves.matched);
  BOOST_TEST(again.plan.score.fits());
}

// b is gone, d is new and reads c: it lies where c does, for its transfer would take 100 ns.
BOOST_AUTO_TEST_CASE(what_is_new_lies_beside_its_neighbours) {
  const std::string common =
      "op a T 9 > 100\nop c T 9 < a > 100\nop e T 9 > 100\nop f T 9 < e > 1\n";
  const PlannerStory before(common + "op b T 9 < c\n");
  const PlannerStory now(common + "op d T 9 < c\n");
  const Replanned again(before.problem, now.problem);
  BOOST_TEST(again.moves.matched == 4u);
  BOOST_TEST(again.moves.moved == 0u);
  BOOST_TEST(again.moves.added == 1u);
  BOOST_TEST(again.moves.gone == 1u);
  BOOST_TEST((again.plan.placement.ops[now.op("d")] == again.plan.placement.ops[now.op("c")]));
  BOOST_TEST((again.plan.placement.ops[now.op("a")] != again.plan.placement.ops[now.op("e")]));
}

// Ops of d2 must move, and where no search is left others stay unless that is worth it.
BOOST_AUTO_TEST_CASE(a_device_can_go) {
  const auto graph = find_family("inception")->make(300, 1);
  const Problem before(graph, machine_of(3)), now(graph, machine_of(2));
  const Replanned again(before, now);
  const std::size_t homeless = again.old_plan.sequences[DeviceId{2}].size();
  BOOST_TEST(homeless > 0u);
  BOOST_TEST(again.moves.moved >= homeless);
  BOOST_TEST(again.moves.moved < again.moves.matched);
  // As good as a plan from nothing, but for what moving must be worth.
  const Plan anew = make_plan(now, "auto", {});
  BOOST_TEST(again.plan.score.step_ns * (1000 - kWorthMovingPerMille) <= anew.score.step_ns * 1000);
}

// Two devices of other names stand for the two of the old plan, in their order.
BOOST_AUTO_TEST_CASE(devices_of_other_names_are_matched_by_position) {
  const PlannerStory before("op a T 9 > 100\nop c T 9 < a\nop e T 9 > 100\nop f T 9 < e\n");
  Machine renamed = StoryMachine{}.build();
  for (Device& device : renamed.devices) device.name = "gpu" + device.name.substr(1);
  const Problem now(before.problem.shared_graph(), renamed);
  const Replanned again(before.problem, now);
  BOOST_TEST(again.moves.moved == 0u);
  BOOST_TEST(again.plan.score.step_ns == again.old_plan.score.step_ns);
}

// Under less memory than the old plan needs, the new one fits.
BOOST_AUTO_TEST_CASE(less_memory_moves_what_it_must) {
  const PlannerStory before("var v 40\nvar w 40\nvar x 10 @g\nop a T 1 @g\n");
  const PlannerStory now("var v 40\nvar w 40\nvar x 10 @g\nop a T 1 @g\n",
                         StoryMachine{.capacity_bytes = 50}.build());
  BOOST_TEST(Replanned(before.problem, now.problem).plan.score.fits());
}

BOOST_AUTO_TEST_CASE(a_plan_of_nothing_here_is_refused) {
  const PlannerStory before("op a T 9\n"), now("op b T 9\n");
  const std::string text = write_plan(before.problem, before.plan("etf"));
  BOOST_TEST(message_of([&] { read_old_plan(text, "old.json", now.problem); }) ==
             "old.json: devices: found none of the keys of its 1 ops in the graph, expected a plan "
             "of this graph or of one like it");
  BOOST_TEST(message_of([&] { read_old_plan("{}", "old.json", now.problem); }) ==
             "old.json: pardnn_plan: found nothing, expected 1, the version of this file");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
