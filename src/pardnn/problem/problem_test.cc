// What can be planned and what is refused, and where units may go.
#include "pardnn/problem/problem.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/io/pdg_reader.h"

namespace pardnn {
namespace {

Machine two_devices(const std::string& kind = "any") {
  return Machine::uniform({.capacity_bytes = {1000, 2000}, .kind = kind});
}

// gpu0, gpu1, host
Machine two_gpus_and_a_host() {
  Machine machine = Machine::uniform({.capacity_bytes = {1000, 1000, 9000}, .kind = "gpu"});
  machine.devices[DeviceId{0}].name = "gpu0";
  machine.devices[DeviceId{1}].name = "gpu1";
  machine.devices[DeviceId{2}].name = "host";
  machine.devices[DeviceId{2}].kind = "cpu";
  return machine;
}

Problem problem(const std::string& graph, const Machine& machine = two_devices(),
                Rules rules = {}) {
  return Problem(read_pdg("pdg 1\n" + graph, "story"), machine, rules);
}

std::string refusal(const std::string& graph, const Machine& machine = two_devices(),
                    Rules rules = {}) {
  try {
    problem(graph, machine, rules);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string allowed(const Problem& p, const std::string& op) {
  return p.allowed(*p.unit(*p.graph().find_op(op))).to_string().substr(kMaxDevices - 3);
}

BOOST_AUTO_TEST_SUITE(problem_suite)

BOOST_AUTO_TEST_CASE(groups_single_ops_and_lonely_variables_are_units) {
  const Problem p = problem(
      "var v 4 @g\n"
      "var lonely 8\n"
      "op a T 1 > 4\n"
      "op b T 1 < v a > =0 @g\n"
      "op c T 1 < b @g\n"
      "op x In 0 > 4 every=1\n");
  // a; the group of b, c and v; lonely
  BOOST_TEST(p.units().size() == 3u);
  BOOST_TEST(index(*p.unit(*p.graph().find_op("a"))) == 0u);
  BOOST_TEST(p.ops(UnitId{1}).size() == 2u);
  BOOST_TEST(p.variables(UnitId{1}).size() == 1u);
  BOOST_TEST(p.ops(UnitId{2}).empty());
  BOOST_TEST(index(p.unit(*p.graph().find_variable("lonely"))) == 2u);
  BOOST_TEST(!p.unit(*p.graph().find_op("x")));
}

BOOST_AUTO_TEST_CASE(durations_are_costs_of_at_least_a_nanosecond) {
  const Problem p = problem(
      "kind gpu cpu\n"
      "op a T 0,7\n"
      "op b T 10,-\n"
      "op x In 5 every=1\n",
      two_gpus_and_a_host());
  const OpId a = *p.graph().find_op("a"), b = *p.graph().find_op("b");
  BOOST_TEST(p.duration_ns(a, DeviceId{1}) == 1);
  BOOST_TEST(p.duration_ns(a, DeviceId{2}) == 7);
  BOOST_TEST(p.mean_duration_ns(a) == 3);  // (1 + 1 + 7) / 3
  BOOST_TEST(p.mean_duration_ns(b) == 10);
  BOOST_TEST(p.duration_ns(*p.graph().find_op("x"), DeviceId{0}) == 0);
  BOOST_TEST(allowed(p, "b") == "011");
}

BOOST_AUTO_TEST_CASE(a_units_devices_are_those_that_all_its_pins_and_costs_allow) {
  const Problem p = problem(
      "kind gpu cpu\n"
      "group g not=gpu0\n"
      "op a T 1,1 @g on=gpu,host\n"
      "op b T 1,- @g\n"
      "op c T 1,1 on=cpu\n"
      "op d T 1,1\n",
      two_gpus_and_a_host());
  BOOST_TEST(allowed(p, "a") == "010");
  BOOST_TEST(allowed(p, "b") == "010");
  BOOST_TEST(allowed(p, "c") == "100");
  BOOST_TEST(allowed(p, "d") == "111");
}

BOOST_AUTO_TEST_CASE(pins_in_conflict_are_named) {
  BOOST_TEST(refusal("kind gpu cpu\n"
                     "group g not=gpu0\n"
                     "op a T 1,1 @g on=gpu0,cpu\n"
                     "op b T 1,- @g\n",
                     two_gpus_and_a_host()) ==
             "group \"g\": found no device where it may be placed (group \"g\" has not=gpu0; op "
             "\"a\" has on=cpu,gpu0; op \"b\" has no cost for kind cpu), expected pins and costs "
             "that leave one");
  BOOST_TEST(refusal("op a T 1 on=d7\n") ==
             "op \"a\" is pinned to d7: found no device and no kind of that name, expected one of "
             "d0 (any), d1 (any)");
}

// A kind that the graph has no costs for runs nothing, but a variable may lie there.
BOOST_AUTO_TEST_CASE(no_cost_for_a_kind_means_not_allowed_there) {
  const Problem p = problem("kind gpu\nop a T 5\nvar v 4\n", two_gpus_and_a_host());
  BOOST_TEST(allowed(p, "a") == "011");
  BOOST_TEST(p.allowed(p.unit(*p.graph().find_variable("v"))).count() == 3u);
  BOOST_TEST(refusal("kind gpu\nop a T 5\n", two_devices("tpu")) ==
             "machine uniform: found devices of kind tpu, expected a kind the graph has costs for: "
             "gpu");
  BOOST_TEST(refusal("op a T 5\n", two_devices("tpu")) == "");  // a graph of the one kind `any`
}

BOOST_AUTO_TEST_CASE(unknown_costs_and_sizes_are_refused_by_name) {
  BOOST_TEST(refusal("op a T ?\nop x In ? every=1\n") ==
             "graph: found 1 ops of unknown cost on kind \"any\": \"a\" (line 2); expected a time "
             "for each, or - where the op must not run");
  BOOST_TEST(refusal("kind gpu tpu\nop a T 1,?\n", two_devices("gpu")) == "");
  BOOST_TEST(refusal("var v ?\nop a T 1 > 4 ?\n") ==
             "graph: found 2 unknown sizes: variable \"v\", output 1 of \"a\" (line 3); expected "
             "bytes for each");
  std::string many;
  for (char name = 'a'; name < 'i'; ++name) many += std::string("op ") + name + " T 1 > ?\n";
  BOOST_TEST(refusal(many).find("\"e\" (line 6) and 3 more") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_margin_is_taken_off_the_capacity_rounded_down) {
  Machine machine = two_devices();
  machine.devices[DeviceId{0}].capacity_bytes = 1050;
  const Problem p = problem("op a T 1\n", machine, {.margin_per_mille = 30});
  BOOST_TEST(p.limit_bytes(DeviceId{0}) == 1019);  // 1050 - floor(31.5)
  BOOST_TEST(p.limit_bytes(DeviceId{1}) == 1940);
  BOOST_TEST(refusal("op a T 1\n", machine, {.margin_per_mille = 1000}) ==
             "margin: found 1000, expected 0 to 999 per mille");
}

BOOST_AUTO_TEST_CASE(rules_that_do_not_go_together_are_refused) {
  BOOST_TEST(refusal("op a T 1\n", two_devices(), {.given_order = true})
                 .starts_with("sequence given: found no order in the graph"));
  BOOST_TEST(refusal("op a T 1\n", two_devices(), {.dispatch = Dispatch::kFifo, .any_timing = true})
                 .starts_with("guarantee any-timing: found it together with sequence fifo"));
  BOOST_TEST(refusal("op a T 1 at=1\n", two_devices(),
                     {.dispatch = Dispatch::kFifo, .given_order = true}) ==
             "sequence: found both fifo and given, expected one of them");
}

// 10 bytes at 4 B/ns are 3 ns, with overhead 5 and latency 7: 8 busy, 15 to cross
BOOST_AUTO_TEST_CASE(crossings_count_overhead_bytes_and_latency) {
  Machine machine = Machine::uniform({.capacity_bytes = {1, 1, 1},
                                      .bytes_per_second = 4'000'000'000,
                                      .overhead_ns = 5,
                                      .latency_ns = 7});
  machine.links[0 * 3 + 1]->latency_ns = 1;
  machine.links[2 * 3 + 1].reset();
  const Problem p = problem("op a T 1\n", machine);
  BOOST_TEST(p.busy_ns(10, DeviceId{1}, DeviceId{0}) == 8);
  BOOST_TEST(p.crossing_ns(10, DeviceId{1}, DeviceId{0}) == 15);
  BOOST_TEST(p.least_crossing_ns(10) == 9);
  BOOST_TEST(p.mean_crossing_ns(10) == 13);  // (4 * 15 + 9) / 5 = 13.8
  BOOST_TEST(problem("op a T 1\n", Machine::uniform({.capacity_bytes = {1}})).mean_crossing_ns(9) ==
             0);
}

BOOST_AUTO_TEST_CASE(sums_beyond_2_to_the_62_are_refused) {
  BOOST_TEST(refusal("op a T 1 > 1500000000000000000\nop b T 1 > 1500000000000000000\n")
                 .starts_with("graph: found sizes whose sum over all devices"));
  BOOST_TEST(refusal("op a T 1 > 4000000000000\n",
                     Machine::uniform({.capacity_bytes = {1, 1}, .bytes_per_second = 1}))
                 .starts_with("graph: found costs and transfers whose sum passes 2^62 ns"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(in_place)

// w -> rd -> mm -> u, which updates w
BOOST_AUTO_TEST_CASE(an_update_after_all_reads_is_accepted) {
  BOOST_TEST(refusal("var w 4 @g\n"
                     "op rd Read 1 < w > =0 @g\n"
                     "op mm MatMul 1 < rd > 4\n"
                     "op u Update 1 < mm !w @g\n") == "");
}

// mm reads the variable's tensor and nothing makes u wait for it
BOOST_AUTO_TEST_CASE(an_update_that_could_come_before_a_read_is_refused) {
  BOOST_TEST(refusal("var w 4 @g\n"
                     "op rd Read 1 < w > =0 @g\n"
                     "op mm MatMul 1 < rd > 4\n"
                     "op u Update 1 < !w ^rd @g\n") ==
             "op \"mm\" (line 4) uses output 0 of \"rd\", whose buffer op \"u\" (line 5) modifies: "
             "found no order between them, expected a path from op \"mm\" to op \"u\"");
}

// rd and u are not ordered at all; a read after the update is fine, too
BOOST_AUTO_TEST_CASE(a_read_op_and_an_update_need_some_order) {
  const std::string graph =
      "var w 4 @g\n"
      "op u Update 1 < !w @g\n";
  BOOST_TEST(
      refusal(graph + "op rd Read 1 < w > =0 @g\n") ==
      "op \"rd\" (line 4) uses \"w\", whose buffer op \"u\" (line 3) modifies: found no order "
      "between them, expected a path from one of them to the other");
  BOOST_TEST(refusal(graph + "op z Read 1 < w > =0 @g\n")
                 .starts_with("op \"z\" (line 4) uses \"w\", whose buffer op \"u\" (line 3)"));
  BOOST_TEST(refusal(graph + "op rd Read 1 < w ^u > =0 @g\nop mm M 1 < rd\n") == "");
}

BOOST_AUTO_TEST_CASE(two_updates_of_one_variable_need_an_order) {
  const std::string graph =
      "var w 4 @g\n"
      "op u1 Update 1 < !w @g\n";
  BOOST_TEST(refusal(graph + "op u2 Update 1 < !w @g\n")
                 .starts_with("op \"u1\" (line 3) uses \"w\", whose buffer op \"u2\" (line 4)"));
  BOOST_TEST(refusal(graph + "op u2 Update 1 < !w ^u1 @g\n") == "");
}

// a -> relu writes over a; b reads a, too
BOOST_AUTO_TEST_CASE(a_tensor_read_beside_its_modification_needs_a_path_to_it) {
  const std::string graph =
      "op a T 1 > 4 @g\n"
      "op b T 1 < a > 4\n";
  BOOST_TEST(
      refusal(graph + "op relu Relu 1 < !a > =0 @g\n") ==
      "op \"b\" (line 3) uses output 0 of \"a\", whose buffer op \"relu\" (line 4) modifies: "
      "found no order between them, expected a path from op \"b\" to op \"relu\"");
  BOOST_TEST(refusal(graph + "op relu Relu 1 < !a ^b > =0 @g\n") == "");
}

// c reads relu's output, which is the buffer after the modification
BOOST_AUTO_TEST_CASE(what_is_made_after_a_modification_may_be_read_freely) {
  BOOST_TEST(refusal("op a T 1 > 4 @g\n"
                     "op relu Relu 1 < !a > =0 @g\n"
                     "op c T 1 < relu\n"
                     "op v View 1 < relu > =0\n"
                     "op d T 1 < v\n") == "");
}

// b waits for relu and still wants what a was before: refused
BOOST_AUTO_TEST_CASE(a_read_of_the_old_tensor_after_its_modification_is_refused) {
  BOOST_TEST(refusal("op a T 1 > 4 @g\n"
                     "op relu Relu 1 < !a > =0 @g\n"
                     "op b T 1 < a ^relu\n")
                 .find("expected a path from op \"b\" to op \"relu\"") != std::string::npos);
}

// v is an alias of a; r reads v; relu modifies a
BOOST_AUTO_TEST_CASE(a_reader_of_an_alias_counts_as_a_reader) {
  const std::string graph =
      "op a T 1 > 4 @g\n"
      "op v View 1 < a > =0\n"
      "op r T 1 < v > 4\n";
  BOOST_TEST(
      refusal(graph + "op relu Relu 1 < !a ^v @g\n")
          .starts_with("op \"r\" (line 4) uses output 0 of \"v\", whose buffer op \"relu\""));
  BOOST_TEST(refusal(graph + "op relu Relu 1 < !a ^r @g\n") == "");
}

// Three modifications in a row, each of the one before; r reads the second state
BOOST_AUTO_TEST_CASE(a_chain_of_modifications_is_checked_link_by_link) {
  const std::string graph =
      "op a T 1 > 4 @g\n"
      "op m1 M 1 < !a > =0 @g\n"
      "op m2 M 1 < !m1 > =0 @g\n"
      "op r T 1 < m2 > 4\n";
  BOOST_TEST(refusal(graph + "op m3 M 1 < !m2 r @g\n") == "");
  BOOST_TEST(refusal(graph + "op m3 M 1 < !m2 @g\n")
                 .starts_with("op \"r\" (line 5) uses output 0 of \"m2\", whose buffer op \"m3\""));
  // m3 modifies what m1 made, after m2 has changed it.
  BOOST_TEST(
      refusal("op a T 1 > 4 @g\n"
              "op m1 M 1 < !a > =0 @g\n"
              "op m2 M 1 < !m1 > =0 @g\n"
              "op m3 M 1 < !m1 ^m2 @g\n")
          .starts_with("op \"m3\" (line 5) uses output 0 of \"m1\", whose buffer op \"m2\""));
}

// A wide graph in which the path from b to u is on no deepest chain: b -> s -> u, and a long one
BOOST_AUTO_TEST_CASE(a_path_off_the_deepest_chains_is_found) {
  BOOST_TEST(refusal("op a T 1 > 4 @g\n"
                     "op b T 1 < a > 4\n"
                     "op l1 T 1 > 4\n"
                     "op l2 T 1 < l1 > 4\n"
                     "op l3 T 1 < l2 > 4\n"
                     "op l4 T 1 < l3 > 4\n"
                     "op s T 1 < b l2 > 4\n"
                     "op t T 1 < l4 > 4\n"
                     "op u M 1 < !a s t @g\n") == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
