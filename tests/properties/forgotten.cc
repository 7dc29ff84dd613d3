// The checker against predictions that are right for another problem: a simulator that forgets one
// rule of the model predicts what the rightful one predicts of a graph or machine without it.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/plan/bound.h"
#include "pardnn/check/check.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/sim/simulate.h"

#include "tests/properties/machines.h"
#include "tests/properties/tangle.h"

namespace pardnn::properties {
namespace {

using Lines = std::vector<std::vector<std::string>>;  // the sequence of each device

Machine machine() {
  return Machine::uniform({.capacity_bytes = {1'000, 1'000},
                           .bytes_per_second = 1'000'000'000,
                           .overhead_ns = 2,
                           .latency_ns = 3,
                           .granularity_bytes = 8,
                           .reserve_bytes = 5});
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Variables are on the first device.
Plan planned(const Problem& problem, const Lines& sequences) {
  Plan plan;
  plan.placement.ops.resize(problem.graph().ops().size());
  plan.placement.variables.assign(problem.graph().variables().size(), DeviceId{0});
  plan.sequences.resize(problem.device_count());
  for (std::uint32_t n = 0; n < sequences.size(); ++n) {
    for (const std::string& key : sequences[n]) {
      const OpId op = problem.graph().find_op(key).value();
      plan.placement.ops[op] = DeviceId{n};
      plan.sequences[DeviceId{n}].push_back(op);
    }
  }
  plan.prediction = predict(problem, plan.placement, plan.sequences).value();
  plan.score = score_of(problem, plan.prediction);
  plan.bound_ns = lower_bound_ns(problem);
  return plan;
}

// What the checker says of a prediction for one graph and machine as the answer for others.
std::string complaints(const Problem& right, const Problem& forgetful, const Lines& sequences) {
  BOOST_REQUIRE(check(right, planned(right, sequences)).empty());
  std::string text;
  for (const std::string& one : check(right, planned(forgetful, sequences))) text += one + "; ";
  return text;
}

void expect_caught(const std::string& found, const std::string& part) {
  BOOST_TEST(found.find(part) != std::string::npos, "it says: " << found);
}

// The graph, and what it looks like to who forgets the rule.
std::string after_change(const std::string& graph, const std::string& from, const std::string& to,
                         const Lines& sequences) {
  const Problem right(read_pdg("pdg 1\n" + graph, "right"), machine());
  const Problem forgetful(read_pdg("pdg 1\n" + replaced(graph, from, to), "forgetful"), machine());
  return complaints(right, forgetful, sequences);
}

// The same with the machine of `right` and that of who forgets.
std::string after_change(const std::string& graph, const Machine& right, const Machine& forgetful,
                         const Lines& sequences, Rules right_rules = {}, Rules rules = {}) {
  const auto read = read_pdg("pdg 1\n" + graph, "both");
  return complaints(Problem(read, right, right_rules), Problem(read, forgetful, rules), sequences);
}

BOOST_AUTO_TEST_SUITE(forgotten_rules)

BOOST_AUTO_TEST_CASE(workspace_is_forgotten) {
  expect_caught(after_change("op a T 5 > 8 ws=6\n", " ws=6", "", {{"a"}}),
                "peak of d0 in bytes: the plan says 13, it is 21");
}

BOOST_AUTO_TEST_CASE(an_alias_is_counted_as_a_buffer_of_its_own) {
  expect_caught(after_change("op a T 5 > 8\n"
                             "op b View 1 < a > =0\n",
                             "=0", "8", {{"a", "b"}}),
                "peak of d0 in bytes: the plan says 21, it is 13");
}

BOOST_AUTO_TEST_CASE(the_buffer_behind_an_alias_is_given_free_too_early) {
  expect_caught(after_change("op a T 5 > 8\n"
                             "op b View 1 < a > =0/0\n"
                             "op c T 1 > 8\n"
                             "op d T 1 < b\n",
                             "=0/0", "0", {{"a", "b", "c", "d"}}),
                "moment of the peak of d0 in ns: the plan says 0, it is 6");
}

BOOST_AUTO_TEST_CASE(a_buffer_that_is_taken_over_is_counted_twice) {
  expect_caught(after_change("op a T 5 > 8\n"
                             "op b T 5 < a > 8~0\n",
                             "8~0", "8", {{"a", "b"}}),
                "peak of d0 in bytes: the plan says 21, it is 13");
}

// d waits for the copy of a: its buffer is still being sent when b starts.
BOOST_AUTO_TEST_CASE(a_buffer_is_taken_over_while_it_is_sent) {
  expect_caught(after_change("op a T 5 > 8 @g\n"
                             "op b T 5 < a > 8~0 @g\n"
                             "op d T 1 < a\n",
                             "op d T 1 < a", "op d T 1 < ^a", {{"a", "b"}, {"d"}}),
                "peak of d0 in bytes: the plan says 13, it is 21");
}

BOOST_AUTO_TEST_CASE(an_op_in_place_is_given_a_buffer_of_its_own) {
  expect_caught(after_change("op a T 5 > 8 @g\n"
                             "op b T 5 < !a > =0 @g\n",
                             "!a > =0", "a > 8", {{"a", "b"}}),
                "peak of d0 in bytes: the plan says 21, it is 13");
}

BOOST_AUTO_TEST_CASE(a_variable_is_forgotten) {
  expect_caught(after_change("var v 20\nop a T 1\n", "v 20", "v 0", {{"a"}}),
                "peak of d0 in bytes: the plan says 5, it is 29");
}

constexpr const char* kConstant =
    "op c Const 0 > 16 every=1\n"
    "op x T 5 < c\n"
    "op y T 5 < c\n";

BOOST_AUTO_TEST_CASE(a_constant_is_forgotten) {
  expect_caught(after_change(kConstant, "> 16", "> 0", {{"x"}, {"y"}}), "peak of d1 in bytes");
}

BOOST_AUTO_TEST_CASE(a_constant_is_held_by_the_first_device_only) {
  expect_caught(after_change(kConstant, "op y T 5 < c", "op y T 5", {{"x"}, {"y"}}),
                "peak of d1 in bytes: the plan says 5, it is 21");
}

BOOST_AUTO_TEST_CASE(an_output_that_nobody_reads_is_forgotten) {
  expect_caught(after_change("op a T 5 > 8 4\n", "8 4", "8 0", {{"a"}}),
                "peak of d0 in bytes: the plan says 13, it is 21");
}

BOOST_AUTO_TEST_CASE(a_fetched_output_ends_with_its_op) {
  expect_caught(after_change("op a T 5 > 8*\nop b T 5 > 8\n", "8*", "8", {{"a", "b"}}),
                "peak of d0 in bytes: the plan says 13, it is 21");
}

BOOST_AUTO_TEST_CASE(a_control_edge_is_not_sent) {
  expect_caught(after_change("op a T 5\nop b T 5 < ^a\n", " < ^a", "", {{"a"}, {"b"}}),
                "transfer of the control edge from a to d1 is missing");
}

BOOST_AUTO_TEST_CASE(an_op_without_cost_takes_no_time) {
  const char* graph = "op a T 0\nop b T 5 < ^a\n";
  BOOST_TEST(after_change(graph, "a T 0", "a T 1", {{"a", "b"}}) == "");  // 0 ns count as 1
  expect_caught(after_change(graph, "a T 0", "a T 2", {{"a", "b"}}),
                "start of op b in ns: the plan says 2, it is 1");
}

BOOST_AUTO_TEST_CASE(buffers_are_not_rounded_up) {
  Machine fine = machine();
  fine.granularity_bytes = 1;
  expect_caught(after_change("op a T 5 > 9\n", machine(), fine, {{"a"}}),
                "peak of d0 in bytes: the plan says 14, it is 21");
}

BOOST_AUTO_TEST_CASE(the_reserve_is_forgotten) {
  Machine whole = machine();
  whole.devices[DeviceId{1}].reserve_bytes = 0;
  expect_caught(after_change("op a T 5\n", machine(), whole, {{"a"}}),
                "peak of d1 in bytes: the plan says 0, it is 5");
}

BOOST_AUTO_TEST_CASE(overhead_is_taken_for_latency) {
  Machine other = machine();
  std::swap(other.links[1]->overhead_ns, other.links[1]->latency_ns);
  expect_caught(
      after_change("op a T 5 > 8 8\nop b T 5 < a a:1\n", machine(), other, {{"a"}, {"b"}}),
      "transfer of output 1 of a to d1, start in ns: the plan says 16, it is 15");
}

constexpr const char* kExchange =
    "op a T 5 > 8\n"
    "op b T 5 > 8\n"
    "op c T 5 < b\n"
    "op d T 5 < a\n";

BOOST_AUTO_TEST_CASE(a_shared_channel_is_taken_for_two) {
  Machine shared = machine();
  shared.links[1]->channels = shared.links[2]->channels;
  expect_caught(after_change(kExchange, shared, machine(), {{"a", "c"}, {"b", "d"}}),
                "transfer of output 0 of b to d0, start in ns: the plan says 5, it is 15");
}

BOOST_AUTO_TEST_CASE(transfers_do_not_wait_for_their_channel) {
  expect_caught(after_change("op a T 5 > 8 8\nop b T 5 < a a:1\n", machine(), machine(),
                             {{"a"}, {"b"}}, {}, {.contention = false}),
                "transfer of output 1 of a to d1, start in ns: the plan says 5, it is 15");
}

BOOST_AUTO_TEST_CASE(a_limit_is_forgotten) {
  Machine small = machine();
  small.devices[DeviceId{0}].capacity_bytes = 10;
  expect_caught(after_change("op a T 5 > 8\n", small, machine(), {{"a"}}),
                "overflow in bytes: the plan says 0, it is 3");
}

BOOST_AUTO_TEST_CASE(the_margin_is_forgotten) {
  Machine small = machine();
  small.devices[DeviceId{0}].capacity_bytes = 20;
  expect_caught(after_change("op a T 5 > 8\n", small, small, {{"a"}}, {.margin_per_mille = 500}),
                "overflow in bytes: the plan says 0, it is 3");
}

// --- any plan, with one number changed ---

struct Mutation {
  const char* name;
  std::function<bool(Plan&, Random&)> apply;  // false: there is nothing to change
};

template <class T>
T& any_of(std::vector<T>& items, Random& random) {
  return items[random.below(static_cast<std::uint32_t>(items.size()))];
}

OpId any_op(const Plan& plan, Random& random) {
  while (true) {
    const OpId op{random.below(static_cast<std::uint32_t>(plan.placement.ops.size()))};
    if (plan.placement.ops[op]) return op;
  }
}

DeviceId any_device(const Plan& plan, Random& random) {
  return DeviceId{random.below(static_cast<std::uint32_t>(plan.sequences.size()))};
}

template <class Change>
std::function<bool(Plan&, Random&)> of_transfer(Change change) {
  return [change](Plan& plan, Random& random) {
    if (plan.prediction.transfers.empty()) return false;
    change(any_of(plan.prediction.transfers, random));
    return true;
  };
}

template <class Change>
std::function<bool(Plan&, Random&)> of_number(Change change) {
  return [change](Plan& plan, Random& random) {
    change(plan, random);
    return true;
  };
}

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all{
      {"an op starts early",
       of_number([](Plan& p, Random& r) { --p.prediction.start_ns[any_op(p, r)]; })},
      {"an op starts late",
       of_number([](Plan& p, Random& r) { ++p.prediction.start_ns[any_op(p, r)]; })},
      {"a transfer is missing",
       [](Plan& p, Random& r) {
         auto& transfers = p.prediction.transfers;
         if (transfers.empty()) return false;
         transfers.erase(transfers.begin() + r.below(std::uint32_t(transfers.size())));
         return true;
       }},
      {"a transfer is listed twice",
       [](Plan& p, Random& r) {
         auto& transfers = p.prediction.transfers;
         if (transfers.empty()) return false;
         const auto at = transfers.begin() + r.below(std::uint32_t(transfers.size()));
         transfers.insert(at, Transfer(*at));
         return true;
       }},
      {"a transfer is asked for early", of_transfer([](Transfer& t) { --t.request_ns; })},
      {"a transfer starts early", of_transfer([](Transfer& t) { --t.start_ns; })},
      {"a transfer starts late", of_transfer([](Transfer& t) { ++t.start_ns; })},
      {"a transfer arrives early", of_transfer([](Transfer& t) { --t.arrival_ns; })},
      {"a transfer has more bytes", of_transfer([](Transfer& t) { ++t.bytes; })},
      {"a transfer has another output",
       of_transfer([](Transfer& t) { t.output = t.output.value_or(0) + 17; })},
      {"a transfer goes back", of_transfer([](Transfer& t) { std::swap(t.from, t.to); })},
      {"a peak is a byte less",
       of_number([](Plan& p, Random& r) { --p.prediction.peaks[any_device(p, r)].bytes; })},
      {"a peak is a byte more",
       of_number([](Plan& p, Random& r) { ++p.prediction.peaks[any_device(p, r)].bytes; })},
      {"a peak comes later",
       of_number([](Plan& p, Random& r) { ++p.prediction.peaks[any_device(p, r)].at_ns; })},
      {"an any-timing peak is a byte less", of_number([](Plan& p, Random& r) {
         --p.prediction.peaks[any_device(p, r)].any_timing_bytes;
       })},
      {"the step is shorter", of_number([](Plan& p, Random&) { --p.prediction.step_ns; })},
      {"fewer bytes are sent", of_number([](Plan& p, Random&) { --p.prediction.bytes_sent; })},
      {"the score has another step", of_number([](Plan& p, Random&) { --p.score.step_ns; })},
      {"the score has another sum", of_number([](Plan& p, Random&) { ++p.score.bytes_sent; })},
      {"the score has another overflow",
       of_number([](Plan& p, Random&) { ++p.score.overflow_bytes; })},
      {"the bound is too high",
       of_number([](Plan& p, Random&) { p.bound_ns = p.prediction.step_ns + 1; })},
      {"an op is lost",
       [](Plan& p, Random& r) {
         auto& sequence = p.sequences[any_device(p, r)];
         if (sequence.empty()) return false;
         sequence.erase(sequence.begin() + r.below(std::uint32_t(sequence.size())));
         return true;
       }},
      {"an op runs twice", of_number([](Plan& p, Random& r) {
         p.sequences[any_device(p, r)].push_back(any_op(p, r));
       })},
      {"an op is placed where it does not run",
       [](Plan& p, Random& r) {
         const OpId op = any_op(p, r);
         const DeviceId other = any_device(p, r);
         if (p.placement.ops[op] == other) return false;
         p.placement.ops[op] = other;
         return true;
       }},
      {"an op is on no device",
       of_number([](Plan& p, Random& r) { p.placement.ops[any_op(p, r)].reset(); })},
      {"two neighbours of a sequence change places",
       [](Plan& p, Random& r) {
         auto& sequence = p.sequences[any_device(p, r)];
         if (sequence.size() < 2) return false;
         const std::uint32_t at = r.below(std::uint32_t(sequence.size()) - 1);
         std::swap(sequence[at], sequence[at + 1]);
         return true;
       }},
  };
  return all;
}

// Ops by id are in a topological order, on devices as their units say.
Plan spread(const Problem& problem, Random& random) {
  UnitPlacement units(problem.units().size());
  for (const UnitId unit : problem.units()) {
    do {
      units[unit] = DeviceId{random.below(std::uint32_t(problem.device_count()))};
    } while (!problem.is_allowed(unit, units[unit]));
  }
  std::vector<OpId> order;
  for (const OpId op : problem.graph().ops()) {
    if (!problem.graph().is_every(op)) order.push_back(op);
  }
  Plan plan;
  plan.placement = expand(problem, units);
  plan.sequences = sequences_of(problem, plan.placement, order);
  plan.prediction = predict(problem, plan.placement, plan.sequences).value();
  plan.score = score_of(problem, plan.prediction);
  plan.bound_ns = lower_bound_ns(problem);
  return plan;
}

BOOST_AUTO_TEST_CASE(every_mutation_of_every_plan_is_caught) {
  BOOST_TEST(mutations().size() >= 20u);
  for (const Mutation& mutation : mutations()) {
    int applied = 0;
    for (std::uint64_t seed = 0; applied < 100 && seed < 1'000; ++seed) {
      Random random(seed);
      const Problem problem(make_tangle(20, seed), uneven_machine(3, 10'000, 4, true));
      const Plan right = spread(problem, random);
      Plan plan = right;
      if (!mutation.apply(plan, random)) continue;
      ++applied;
      BOOST_TEST(!check(problem, plan).empty(), mutation.name << ", seed " << seed);
    }
    BOOST_TEST(applied == 100, mutation.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
