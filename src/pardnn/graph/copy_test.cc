// A graph rebuilt from its own records is the same graph, field by field.
#include "pardnn/graph/copy.h"

#include <algorithm>
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/graph/specs.h"

using namespace pardnn;

namespace {

std::shared_ptr<const Graph> rebuilt(const Graph& graph) {
  GraphBuilder builder;
  copy_head(graph, builder);
  for (const GroupId group : graph.groups()) builder.group(graph.name(group), graph.pins(group));
  for (const VariableId variable : graph.variables()) builder.variable(spec_of(graph, variable));
  for (const OpId op : graph.ops()) builder.op(spec_of(graph, op));
  return builder.build();
}

void expect_equal_ops(const Graph& a, const Graph& b, OpId op) {
  BOOST_TEST(a.key(op) == b.key(op));
  BOOST_TEST(a.type(op) == b.type(op));
  for (const KindId kind : a.kinds()) BOOST_TEST((a.cost(op, kind) == b.cost(op, kind)));
  BOOST_TEST(a.workspace_bytes(op) == b.workspace_bytes(op));
  BOOST_TEST((a.phase(op) == b.phase(op)));
  BOOST_TEST(a.is_every(op) == b.is_every(op));
  BOOST_TEST((a.at(op) == b.at(op)));
  BOOST_TEST((a.flops(op) == b.flops(op)));
  BOOST_TEST((a.moved_bytes(op) == b.moved_bytes(op)));
  BOOST_TEST((a.group(op) == b.group(op)));
  BOOST_TEST((a.pins(op) == b.pins(op)));
  BOOST_TEST((a.notes(op) == b.notes(op)));
  BOOST_TEST(std::ranges::equal(a.controls(op), b.controls(op)));
  BOOST_REQUIRE(a.inputs(op).size() == b.inputs(op).size());
  for (std::size_t n = 0; n < a.inputs(op).size(); ++n) {
    const Input &one = a.inputs(op)[n], &other = b.inputs(op)[n];
    BOOST_TEST(one.modifies() == other.modifies());
    BOOST_REQUIRE(one.is_variable() == other.is_variable());
    if (one.is_variable()) {
      BOOST_TEST((one.variable() == other.variable()));
    } else {
      BOOST_TEST((one.tensor() == other.tensor()));
    }
  }
  BOOST_REQUIRE(a.outputs(op).size() == b.outputs(op).size());
  for (const TensorId output : a.outputs(op)) {
    const Tensor &one = a.tensor(output), &other = b.tensor(output);
    BOOST_TEST((one.bytes == other.bytes));
    BOOST_TEST((one.alias_of == other.alias_of));
    BOOST_TEST((one.takes_over == other.takes_over));
    BOOST_TEST(one.fetched == other.fetched);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(copy_graph)

// `mixed` has every feature but kinds, `kinds` has those.
BOOST_AUTO_TEST_CASE(a_graph_of_copied_records_is_the_same_graph) {
  for (const char* family : {"mixed", "kinds"}) {
    const auto graph = find_family(family)->make(300, 1);
    const auto copy = rebuilt(*graph);
    BOOST_REQUIRE(copy->ops().size() == graph->ops().size());
    BOOST_REQUIRE(copy->variables().size() == graph->variables().size());
    BOOST_REQUIRE(copy->groups().size() == graph->groups().size());
    BOOST_TEST((copy->about() == graph->about()));
    BOOST_TEST(copy->has_given_order() == graph->has_given_order());
    for (const KindId kind : graph->kinds()) BOOST_TEST(copy->name(kind) == graph->name(kind));
    for (const GroupId group : graph->groups()) {
      BOOST_TEST(copy->name(group) == graph->name(group));
      BOOST_TEST((copy->pins(group) == graph->pins(group)));
    }
    for (const VariableId variable : graph->variables()) {
      BOOST_TEST(copy->key(variable) == graph->key(variable));
      BOOST_TEST((copy->bytes(variable) == graph->bytes(variable)));
      BOOST_TEST((copy->group(variable) == graph->group(variable)));
    }
    for (const OpId op : graph->ops()) expect_equal_ops(*graph, *copy, op);
  }
}

BOOST_AUTO_TEST_CASE(notes_pins_and_unknown_sizes_are_copied) {
  GraphBuilder builder;
  builder.about("costs", "guessed");
  builder.kinds({"gpu", "cpu"});
  builder.group("g", {.on = {"gpu"}, .avoid = {"d3"}});
  VariableSpec variable;
  variable.key = "v";
  variable.group = "g";
  variable.pins = {.on = {"d1"}, .avoid = {}};
  variable.notes = {.name = "kernel", .extra = {{"x-layer", "7"}}};
  builder.variable(variable);
  OpSpec op;
  op.key = "a";
  op.type = "T";
  op.costs = {Cost::unknown(), Cost::not_allowed()};
  op.outputs = {OutputSpec{}, fetched(sized(8))};
  op.phase = Phase::kUpdate;
  op.pins = {.on = {}, .avoid = {"d2"}};
  op.flops = 5;
  op.moved_bytes = 6;
  op.at = 7;
  op.notes = {.name = "first", .extra = {{"x-source", "file"}}};
  builder.op(op);
  const auto graph = builder.build();
  const auto copy = rebuilt(*graph);
  expect_equal_ops(*graph, *copy, OpId{0});
  BOOST_TEST(!copy->tensor(TensorId{0}).bytes.has_value());
  BOOST_TEST(copy->notes(OpId{0}).name.value() == "first");
  BOOST_TEST((copy->pins(VariableId{0}) == variable.pins));
  BOOST_TEST((copy->notes(VariableId{0}) == variable.notes));
  BOOST_TEST(!copy->bytes(VariableId{0}).has_value());
  BOOST_TEST((copy->pins(GroupId{0}) == Pins{.on = {"gpu"}, .avoid = {"d3"}}));
}

BOOST_AUTO_TEST_SUITE_END()
