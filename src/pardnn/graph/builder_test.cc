// The builder: what a graph holds once built, and what is refused when a program builds it.
// Messages with lines and columns are tested with the reader of files.
#include "pardnn/graph/builder.h"

#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/graph/specs.h"

using namespace pardnn;

namespace {

OpSpec make_op(std::string_view key, std::vector<InputSpec> inputs = {},
               std::vector<OutputSpec> outputs = {}) {
  OpSpec spec;
  spec.key = key;
  spec.type = "T";
  spec.costs = {Cost::known(1)};
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  return spec;
}

OpSpec in_group(std::string_view group, OpSpec spec) {
  spec.group = group;
  return spec;
}

OpSpec every(OpSpec spec) {
  spec.every = true;
  return spec;
}

VariableSpec make_variable(std::string_view key, std::optional<std::string_view> group) {
  VariableSpec spec;
  spec.key = key;
  spec.bytes = 100;
  spec.group = group;
  return spec;
}

std::string keys(const Graph& graph) {
  std::string text;
  for (const OpId op : graph.ops()) text += std::string(graph.key(op)) + ' ';
  return text;
}

std::string keys(const Graph& graph, std::span<const OpId> ops) {
  std::string text;
  for (const OpId op : ops) text += std::string(graph.key(op)) + ' ';
  return text;
}

std::string message_of_building(const std::vector<OpSpec>& ops,
                                const std::vector<VariableSpec>& variables = {}) {
  return message_of([&] {
    GraphBuilder builder;
    for (const VariableSpec& variable : variables) builder.variable(variable);
    for (const OpSpec& op : ops) builder.op(op);
    builder.build();
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(builder)

// a - c - b, and d by itself: of the ready ops the least key comes first, so b waits behind c and
// d is last.
BOOST_AUTO_TEST_CASE(ids_are_topological_with_the_least_key_first) {
  for (const std::vector<int>& order : {std::vector{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}}) {
    const std::vector<OpSpec> ops = {make_op("a", {}, {sized(1)}),
                                     make_op("c", {input_of("a")}, {sized(1)}),
                                     make_op("b", {input_of("c")}), make_op("d")};
    GraphBuilder builder;
    for (const int n : order) builder.op(ops[static_cast<std::size_t>(n)]);
    BOOST_TEST(keys(*builder.build()) == "a c b d ");
  }
}

BOOST_AUTO_TEST_CASE(keys_are_compared_as_bytes) {
  GraphBuilder builder;
  for (const char* key : {"z", "B", "é", "a10", "a9"}) builder.op(make_op(key));
  BOOST_TEST(keys(*builder.build()) == "B a10 a9 z é ");
}

//   a:0 --> b (twice), c ; a:1 --> c ; a ..> d, c ..> d
BOOST_AUTO_TEST_CASE(readers_are_ascending_and_each_stands_once) {
  GraphBuilder builder;
  builder.op(make_op("d", {input_of("^c"), input_of("^a"), input_of("^c")}));
  builder.op(make_op("c", {input_of("a:1"), input_of("a")}));
  builder.op(make_op("b", {input_of("a"), input_of("a")}));
  builder.op(make_op("a", {}, {sized(4), sized(6)}));
  const auto graph = builder.build();
  const OpId a = graph->find_op("a").value(), d = graph->find_op("d").value();
  const TensorId first = graph->outputs(a)[0], second = graph->outputs(a)[1];
  BOOST_TEST(keys(*graph, graph->readers(first)) == "b c ");
  BOOST_TEST(keys(*graph, graph->readers(second)) == "c ");
  BOOST_TEST(keys(*graph, graph->controls(d)) == "a c ");
  BOOST_TEST(keys(*graph, graph->control_readers(a)) == "d ");
  BOOST_TEST(graph->inputs(graph->find_op("b").value()).size() == 2);
  BOOST_TEST(graph->tensor(second).bytes.value() == 6);
  BOOST_TEST(graph->tensor(second).number == 1);
}

// w = variable, r = read op of it, v = a view of r's output with a size of its own
BOOST_AUTO_TEST_CASE(aliases_are_followed_to_the_buffer_behind_them) {
  GraphBuilder builder;
  builder.variable(make_variable("w", "g"));
  builder.op(in_group("g", make_op("r", {input_of("w")}, {alias_of(0)})));
  builder.op(make_op("v", {input_of("r")}, {alias_of(0, 40)}));
  builder.op(make_op("x", {input_of("v")}, {sized(7)}));
  builder.op(make_op("y", {input_of("x")}, {alias_of(0)}));
  const auto graph = builder.build();
  const auto output = [&](std::string_view key) {
    return graph->outputs(graph->find_op(key).value()).front();
  };
  const VariableId w = graph->find_variable("w").value();
  BOOST_TEST((graph->origin(output("r")).variable == w));
  BOOST_TEST((graph->origin(output("v")).variable == w));
  BOOST_TEST(graph->tensor(output("r")).bytes.value() == 100);
  BOOST_TEST(graph->tensor(output("v")).bytes.value() == 40);
  BOOST_TEST((graph->origin(output("y")).tensor == output("x")));
  BOOST_TEST(graph->tensor(output("y")).bytes.value() == 7);
  BOOST_TEST((graph->origin(output("x")).tensor == output("x")));
  BOOST_TEST(keys(*graph, graph->touchers(w)) == "r ");
}

BOOST_AUTO_TEST_CASE(one_cost_stands_for_all_kinds) {
  GraphBuilder builder;
  OpSpec op = make_op("a");
  op.costs = {Cost::known(5)};
  builder.op(op);
  op.key = "b";
  op.costs = {Cost::unknown(), Cost::not_allowed()};
  builder.op(op);
  builder.kinds({"gpu", "cpu"});
  const auto graph = builder.build();
  const OpId a = graph->find_op("a").value(), b = graph->find_op("b").value();
  const KindId gpu = graph->find_kind("gpu").value(), cpu = graph->find_kind("cpu").value();
  BOOST_TEST(graph->cost(a, gpu).ns() == 5);
  BOOST_TEST(graph->cost(a, cpu).ns() == 5);
  BOOST_TEST(!graph->cost(b, gpu).is_known());
  BOOST_TEST(graph->cost(b, gpu).is_allowed());
  BOOST_TEST(!graph->cost(b, cpu).is_allowed());
}

BOOST_AUTO_TEST_CASE(groups_are_numbered_by_name_and_pins_are_sets) {
  GraphBuilder builder;
  builder.op(in_group("zeta", make_op("a")));
  builder.group("alpha", {.on = {"d1", "d0", "d1"}, .avoid = {}});
  builder.group("empty", {});
  const auto graph = builder.build();
  BOOST_TEST(graph->groups().size() == 2);
  BOOST_TEST(graph->name(GroupId{0}) == "alpha");
  BOOST_TEST(graph->name(GroupId{1}) == "zeta");
  BOOST_TEST((graph->pins(GroupId{0}).on == std::vector<std::string>{"d0", "d1"}));
  BOOST_TEST(!graph->find_group("empty"));
}

// c (every) ..> a is void; b ..> a counts.
BOOST_AUTO_TEST_CASE(control_edges_from_every_ops_are_void) {
  GraphBuilder builder;
  builder.op(every(make_op("c")));
  builder.op(make_op("b"));
  builder.op(make_op("a", {input_of("^c"), input_of("^b")}));
  const auto graph = builder.build();
  BOOST_TEST(keys(*graph, graph->controls(graph->find_op("a").value())) == "b ");
  BOOST_TEST(graph->control_readers(graph->find_op("c").value()).empty());
}

BOOST_AUTO_TEST_CASE(a_chain_of_a_million_ops_needs_no_deep_stack) {
  GraphBuilder builder;
  std::string before, key;
  for (int n = 0; n < 1'000'000; ++n) {
    key = std::to_string(n);
    if (n == 0) {
      builder.op(make_op(key, {}, {sized(1)}));
    } else {
      builder.op(make_op(key, {input_of(before)}, {alias_of(0)}));
    }
    before = key;
  }
  const auto graph = builder.build();
  const OpId last = graph->ops()[999'999];
  BOOST_TEST(graph->key(last) == "999999");
  BOOST_TEST((graph->origin(graph->outputs(last).front()).tensor == TensorId{0}));
}

BOOST_AUTO_TEST_CASE(an_empty_graph_is_a_graph) {
  const auto graph = GraphBuilder().build();
  BOOST_TEST(graph->ops().empty());
  BOOST_TEST(graph->kinds().size() == 1);
  BOOST_TEST(graph->name(KindId{0}) == "any");
  BOOST_TEST(!graph->find_op("a"));
}

BOOST_AUTO_TEST_CASE(a_program_is_told_keys_instead_of_lines) {
  BOOST_TEST(message_of_building({make_op("a"), make_op("a")}) ==
             "graph: found op \"a\", expected a key of its own: an earlier op has this one");
  BOOST_TEST(message_of_building({make_op("a", {input_of("b")})}) ==
             "graph: found input \"b\" of op \"a\", expected the key of an op or a variable");
  BOOST_TEST(message_of_building({make_op("", {})}) ==
             "graph: found an empty key, expected at least one character");
}

BOOST_AUTO_TEST_CASE(extra_notes_are_kept_by_name) {
  OpSpec op = make_op("a");
  op.notes.extra = {{"x-b", "1"}, {"x-a", "2"}};
  GraphBuilder builder;
  builder.op(op);
  BOOST_TEST(builder.build()->notes(OpId{0}).extra[0].first == "x-a");
  op.notes.extra = {{"x-b", "1"}, {"x-b", "2"}};
  BOOST_TEST(message_of_building({op}) ==
             "graph: found note \"x-b\" twice, expected each note at most once");
  op.notes.extra = {{"colour", "red"}};
  BOOST_TEST(message_of_building({op}) ==
             "graph: found note \"colour\", expected a name like x-note");
}

BOOST_AUTO_TEST_CASE(a_failed_build_keeps_what_was_added) {
  GraphBuilder builder;
  builder.op(make_op("b", {input_of("a")}));
  BOOST_CHECK_THROW(builder.build(), Error);
  builder.op(make_op("a", {}, {sized(1)}));
  BOOST_TEST(keys(*builder.build()) == "a b ");
}

BOOST_AUTO_TEST_CASE(an_op_that_is_refused_leaves_no_trace) {
  GraphBuilder builder;
  builder.op(make_op("a", {}, {sized(1)}));
  BOOST_CHECK_THROW(builder.op(make_op("b", {input_of("a"), input_of("\xFF")})), Error);
  BOOST_CHECK_THROW(builder.op(make_op("a", {input_of("nowhere")})), Error);
  builder.op(make_op("b", {input_of("a")}));
  BOOST_TEST(keys(*builder.build()) == "a b ");
}

BOOST_AUTO_TEST_CASE(numbers_from_programs_are_checked) {
  BOOST_TEST(message_of_building({make_op("a", {}, {sized(-5)})}) ==
             "graph: found size -5 of \"a\", expected a number from 0 to 2^62 - 1");
  OpSpec op = make_op("a");
  op.workspace_bytes = std::int64_t{1} << 62;
  BOOST_TEST(message_of_building({op}) ==
             "graph: found workspace 4611686018427387904 of \"a\", "
             "expected a number from 0 to 2^62 - 1");
  op = make_op("a");
  op.costs.clear();
  BOOST_TEST(message_of_building({op}) == "graph: found op \"a\" without a cost, expected a cost");
}

// x -> u -> v -> u: x waits for nothing and is no part of the cycle
BOOST_AUTO_TEST_CASE(a_cycle_is_named_from_its_least_key_along_its_edges) {
  BOOST_TEST(
      message_of_building({make_op("x", {}, {sized(1)}), make_op("v", {input_of("u")}, {sized(1)}),
                           make_op("u", {input_of("x"), input_of("v")}, {sized(1)}),
                           make_op("after", {input_of("v")})}) ==
      "graph: found a cycle \"u\" -> \"v\" -> \"u\", expected ops that do not wait for "
      "themselves");
  BOOST_TEST(message_of_building({make_op("a", {input_of("^a")})}) ==
             "graph: found a cycle \"a\" -> \"a\", expected ops that do not wait for themselves");
}

BOOST_AUTO_TEST_CASE(a_long_cycle_is_named_in_part) {
  std::vector<std::string> names;
  for (char name = 'a'; name < 'a' + 20; ++name) names.emplace_back(1, name);
  std::vector<OpSpec> ops;
  for (std::size_t n = 0; n < 20; ++n) {
    ops.push_back(make_op(names[n], {input_of(names[(n + 19) % 20])}, {sized(1)}));
  }
  std::string expected = "graph: found a cycle";
  for (std::size_t n = 0; n < 12; ++n) expected += (n ? " -> \"" : " \"") + names[n] + '"';
  BOOST_TEST(message_of_building(ops) ==
             expected +
                 " -> … (8 more ops) -> \"a\", expected ops that do not wait for themselves");
}

BOOST_AUTO_TEST_CASE(a_variable_is_touched_from_its_group_only) {
  BOOST_TEST(message_of_building({in_group("h", make_op("a", {input_of("w")}))},
                                 {make_variable("w", "g")}) ==
             "graph: found op \"a\" of group \"h\" touching variable \"w\" of group \"g\", "
             "expected both in one group");
  BOOST_TEST(
      message_of_building({make_op("a", {input_of("w")})}, {make_variable("w", std::nullopt)}) ==
      "graph: found op \"a\" of no group touching variable \"w\" of no group, expected both "
      "in one group");
}

// p - v (a view, outside the group) - m, which modifies the buffer
BOOST_AUTO_TEST_CASE(a_modified_buffer_has_one_group_along_its_aliases) {
  const auto p = in_group("g", make_op("p", {}, {sized(4)}));
  const auto m = in_group("g", make_op("m", {input_of("!v")}));
  BOOST_TEST(message_of_building({p, make_op("v", {input_of("p")}, {alias_of(0)}), m}) ==
             "graph: found op \"m\" of group \"g\" modifying a buffer of op \"v\" of no group, "
             "expected both in one group");
  BOOST_TEST(
      message_of_building({make_op("p", {}, {sized(4)}),
                           in_group("g", make_op("v", {input_of("p")}, {alias_of(0)})), m}) ==
      "graph: found op \"m\" of group \"g\" modifying a buffer of op \"p\" of no group, "
      "expected both in one group");
  BOOST_TEST(message_of_building({p, make_op("m", {input_of("!p")})}) ==
             "graph: found op \"m\" of no group modifying an input, expected a group that it "
             "shares with what made the buffer");
  BOOST_TEST(message_of_building({p, in_group("g", make_op("v", {input_of("p")}, {alias_of(0)})),
                                  m}) == "nothing was refused");
}

BOOST_AUTO_TEST_CASE(the_buffer_of_an_every_op_is_never_modified) {
  BOOST_TEST(message_of_building({every(make_op("c", {}, {sized(4)})),
                                  in_group("g", make_op("v", {input_of("c")}, {alias_of(0)})),
                                  in_group("g", make_op("m", {input_of("!v")}))}) ==
             "graph: found op \"m\" modifying the buffer of every op \"c\", expected a buffer that "
             "is made in the step");
}

BOOST_AUTO_TEST_CASE(every_ops_depend_on_every_ops_alone) {
  BOOST_TEST(
      message_of_building({make_op("a", {}, {sized(1)}), every(make_op("c", {input_of("a")}))}) ==
      "graph: found op \"a\" as an input of every op \"c\", expected outputs of every ops "
      "only");
  BOOST_TEST(message_of_building({make_op("a"), every(make_op("c", {input_of("^a")}))}) ==
             "graph: found a control edge from op \"a\" to every op \"c\", expected control edges "
             "from every ops only");
  BOOST_TEST(
      message_of_building({every(make_op("c", {input_of("w")}))}, {make_variable("w", "g")}) ==
      "graph: found variable \"w\" as an input of every op \"c\", expected outputs of every "
      "ops only");
  BOOST_TEST(message_of_building({every(in_group("g", make_op("c")))}) ==
             "graph: found a group of every op \"c\", expected none on an op of every device");
}

BOOST_AUTO_TEST_CASE(a_given_order_is_whole_unique_and_topological) {
  const auto at = [](std::int64_t place, OpSpec spec) {
    spec.at = place;
    return spec;
  };
  const auto a = make_op("a", {}, {sized(1)}), b = make_op("b", {input_of("a")});
  BOOST_TEST(message_of_building({at(0, a), b}) ==
             "graph: found op \"b\" without at, expected at for every ordinary op, as others have "
             "it");
  BOOST_TEST(message_of_building({at(7, a), at(7, make_op("c"))}) ==
             "graph: found at=7 of op \"a\" and of op \"c\", expected a place of its own for each "
             "op");
  BOOST_TEST(message_of_building({at(2, a), at(1, b)}) ==
             "graph: found op \"b\" at 1, which waits for op \"a\" at 2, expected producers before "
             "their readers");
  BOOST_TEST(message_of_building({at(2, make_op("a")), at(1, make_op("b", {input_of("^a")}))}) ==
             "graph: found op \"b\" at 1, which waits for op \"a\" at 2, expected producers before "
             "their readers");
  BOOST_TEST(message_of_building({at(1, a), at(2, b), every(make_op("c"))}) ==
             "nothing was refused");
}

BOOST_AUTO_TEST_CASE(sums_stay_below_two_to_the_62) {
  const std::int64_t half = std::int64_t{1} << 61;
  BOOST_TEST(
      message_of_building({make_op("a", {}, {sized(half)}), make_op("b", {}, {sized(half)})}) ==
      "graph: found sizes that sum to 2^62 or more at op \"b\", expected sums below 2^62");
  OpSpec slow = make_op("a");
  slow.costs = {Cost::known(half)};
  OpSpec slower = make_op("b");
  slower.costs = {Cost::known(half - 1)};
  BOOST_TEST(message_of_building({slow, slower}) == "nothing was refused");
  slower.costs = {Cost::known(half)};
  BOOST_TEST(message_of_building({slow, slower}) ==
             "graph: found costs that sum to 2^62 or more at op \"b\", expected sums below 2^62");
}

BOOST_AUTO_TEST_SUITE_END()
