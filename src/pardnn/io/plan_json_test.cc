// Plan files: all of a plan goes through them, and a plan of another graph does not come back.
// (What else is refused is in tests/bad_inputs/plans.txt.)
#include "pardnn/io/plan_json.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/io/pdg_reader.h"

using namespace pardnn;

namespace {

constexpr const char* kGraph =
    "pdg 1\n"
    "about costs=guessed\n"
    "var v 20 @g\n"
    "var lone 8\n"
    "op a%20b T 10 > 5\n"
    "op every Const 0 > 4 every=1\n"
    "op r Read 0 < v > =0 @g\n"
    "op c T 4 < a%20b r ^r every\n";

constexpr DeviceId d0{0}, d1{1};

Problem problem_of(const std::string& graph, Rules rules = {}) {
  return Problem(
      read_pdg(graph, "g"),
      Machine::uniform(
          {.capacity_bytes = {100, 60}, .bytes_per_second = 1'000'000'000, .latency_ns = 3}),
      rules);
}

// Numbers of no meaning: the file carries what it is given.
Plan any_plan(const Problem& problem) {
  const auto op = [&](const char* key) { return *problem.graph().find_op(key); };
  Plan plan;
  plan.placement.ops.resize(4);
  plan.placement.ops[op("a b")] = d0;
  plan.placement.ops[op("r")] = d1;
  plan.placement.ops[op("c")] = d1;
  plan.placement.variables.resize(2);
  plan.placement.variables[*problem.graph().find_variable("v")] = d1;
  plan.placement.variables[*problem.graph().find_variable("lone")] = d0;
  plan.sequences.resize(2);
  plan.sequences[d0] = {op("a b")};
  plan.sequences[d1] = {op("r"), op("c")};
  plan.prediction.start_ns.resize(4);
  plan.prediction.start_ns[op("c")] = 18;
  plan.prediction.transfers = {{op("a b"), 0, d0, d1, 5, 10, 11, 18},
                               {op("a b"), std::nullopt, d0, d1, 0, 10, 16, 20}};
  plan.prediction.peaks.resize(2);
  plan.prediction.peaks[d0] = {13, 1, 14};
  plan.prediction.peaks[d1] = {63, 11, 64};
  plan.prediction.step_ns = plan.score.step_ns = 22;
  plan.prediction.bytes_sent = plan.score.bytes_sent = 5;
  plan.score.overflow_bytes = 3;
  plan.algorithm = "somebody";
  plan.bound_ns = 12;
  plan.seed = 77;
  plan.steps = 9;
  return plan;
}

std::string refusal(const std::string& text, const std::string& graph) {
  return message_of([&] { read_plan(text, "p.json", read_pdg(graph, "g")); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_json)

BOOST_AUTO_TEST_CASE(all_of_a_plan_goes_through_its_file) {
  const Problem problem = problem_of(kGraph);
  const Plan plan = any_plan(problem);
  const PlanFile file = read_plan(write_plan(problem, plan), "p.json", problem.shared_graph());
  BOOST_TEST((file.plan.placement == plan.placement));
  BOOST_TEST((file.plan.sequences == plan.sequences));
  BOOST_TEST((file.plan.prediction == plan.prediction));
  BOOST_TEST((file.plan.score == plan.score));
  BOOST_TEST(file.plan.algorithm == "somebody");
  BOOST_TEST(file.plan.bound_ns == 12);
  BOOST_TEST(file.plan.seed == 77u);
  BOOST_TEST(file.plan.steps == 9);
}

BOOST_AUTO_TEST_CASE(machine_and_rules_go_through_the_file) {
  const Rules rules[] = {{.dispatch = Dispatch::kFifo, .contention = false},
                         {.margin_per_mille = 30, .any_timing = true}};
  for (const Rules& one : rules) {
    const Problem problem = problem_of(kGraph, one);
    const std::string text = write_plan(problem, any_plan(problem));
    const PlanFile file = read_plan(text, "p.json", problem.shared_graph());
    BOOST_TEST((file.problem.rules() == one));
    BOOST_TEST(file.problem.limit_bytes(d1) == problem.limit_bytes(d1));
    BOOST_TEST(file.problem.link(d0, d1).latency_ns == 3);
    BOOST_TEST(write_plan(file.problem, file.plan) == text);
  }
}

BOOST_AUTO_TEST_CASE(the_file_names_graph_version_and_source_of_costs) {
  const Problem problem = problem_of(kGraph);
  const std::string text = write_plan(problem, any_plan(problem));
  BOOST_TEST(text.find("\"pardnn_plan\": 1") != std::string::npos);
  BOOST_TEST(text.find("\"version\": \"" PARDNN_VERSION "\"") != std::string::npos);
  BOOST_TEST(text.find("\"costs\": \"guessed\"") != std::string::npos);
  BOOST_TEST(text.find("\"fits\": false") != std::string::npos);
}

// Names and what is kept for people do not make another graph; costs, ops and variables do.
BOOST_AUTO_TEST_CASE(a_plan_of_another_graph_is_refused_with_what_differs) {
  const Problem problem = problem_of(kGraph);
  const std::string text = write_plan(problem, any_plan(problem));
  const std::string graph = kGraph;
  BOOST_TEST(refusal(text, graph + "# a comment\n") == "nothing was refused");
  BOOST_TEST(refusal(text, graph + "op more T 1\n") ==
             "p.json: graph: found a plan of another graph (it has 4 ops, this one 5), expected "
             "one of this graph; plan again");
  BOOST_TEST(refusal(text, graph + "var more 1\n") ==
             "p.json: graph: found a plan of another graph (it has 2 variables, this one 3), "
             "expected one of this graph; plan again");
  const std::string other = "pdg 1\nvar v 21" + graph.substr(graph.find(" @g\n"));
  BOOST_TEST(refusal(text, other) ==
             "p.json: graph: found a plan of another graph (costs, sizes, edges or keys differ), "
             "expected one of this graph; plan again");
}

// Rule X6: nothing in the file is believed that follows from the rest of it.
BOOST_AUTO_TEST_CASE(what_the_file_says_of_limits_and_fitting_must_follow_from_the_rest) {
  const Problem problem = problem_of(kGraph);
  const std::string text = write_plan(problem, any_plan(problem));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    BOOST_REQUIRE(other.find(from) != std::string::npos);
    return other.replace(other.find(from), from.size(), to);
  };
  BOOST_TEST(refusal(replaced("\"fits\": false", "\"fits\": true"), kGraph) ==
             "p.json: fits: found true, expected false, since overflow_bytes is 3");
  BOOST_TEST(refusal(replaced("\"limit_bytes\": 60", "\"limit_bytes\": 90"), kGraph) ==
             "p.json: devices[1].limit_bytes: found 90, expected 60, by its machine and margin");
}

BOOST_AUTO_TEST_SUITE_END()
