// The checker finds every kind of wrong plan and prediction and names it. All right numbers are
// worked by hand here, so that the simulator has no part in it.
#include "pardnn/check/check.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/io/pdg_reader.h"

namespace pardnn {
namespace {

// d0 runs r b c u, d1 runs d e. A byte takes 1 ns, a transfer holds its channel for 2 ns more and
// arrives 3 ns later. 5 bytes of each device are set aside.
//
//   v - r - b -+- c ------.          v is read by r and updated by u, all three on d0;
//               \          \         k is a constant that e reads
//                +- d -+---- e - k
//                       \- u - v
constexpr const char* kGraph =
    "pdg 1\n"
    "group g on=d0\n"
    "var v 20 @g\n"
    "op k Const 0 > 16 every=1\n"
    "op r Read 2 < v > =0 @g\n"
    "op b Product 10 < r > 8 4 ws=6\n"
    "op c Sum 5 < b > 8~0 not=d1\n"
    "op d Loss 7 < b b:1 > 3*\n"
    "op e Report 4 < c d k ^b\n"
    "op u Update 3 < d !v ^r @g\n";

struct Story {
  explicit Story(Rules rules = {}, const std::string& graph = kGraph)
      : problem(read_pdg(graph, "story"),
                Machine::uniform({.capacity_bytes = {45, 44},
                                  .bytes_per_second = 1'000'000'000,
                                  .overhead_ns = 2,
                                  .latency_ns = 3,
                                  .reserve_bytes = 5}),
                rules) {}

  OpId op(const std::string& key) const { return *problem.graph().find_op(key); }
  VariableId variable() const { return *problem.graph().find_variable("v"); }

  void place(const std::string& device, const std::vector<std::string>& keys) {
    const DeviceId at = *problem.machine().find(device);
    plan.sequences[at].clear();
    for (const std::string& key : keys) {
      plan.placement.ops[op(key)] = at;
      plan.sequences[at].push_back(op(key));
    }
  }

  void start(const std::string& key, std::int64_t ns) { plan.prediction.start_ns[op(key)] = ns; }

  void send(const std::string& key, std::optional<std::uint32_t> output, std::uint32_t from,
            std::int64_t bytes, std::int64_t request, std::int64_t start, std::int64_t arrival) {
    plan.prediction.transfers.push_back(
        {op(key), output, DeviceId{from}, DeviceId{1 - from}, bytes, request, start, arrival});
  }
  // Of b: 0, 1 and the control edge to e; c; d.
  Transfer& transfer(std::size_t n) { return plan.prediction.transfers[n]; }
  Peak& peak(std::uint32_t device) { return plan.prediction.peaks[DeviceId{device}]; }

  std::string complaints() const {
    std::string text;
    for (const std::string& one : check(problem, plan)) text += (text.empty() ? "" : "; ") + one;
    return text;
  }

  Problem problem;
  Plan plan;
};

constexpr DeviceId d0{0}, d1{1};

// r [0,2) b [2,12) c [12,17) on d0. From d0 go b:0 [12,22) there at 25, b:1 [22,28) there at 31,
// the signal to e [28,30) there at 33 and c, asked for at 17, [30,40) there at 43. d [31,38) on
// d1; d goes back [38,43), there at 46. e [43,47), u [46,49).
//
// d0 holds 5 + 20 of v, b:0 [2,25), b:1 [2,31), 6 of workspace [2,12), c [12,43), and the copy of d
// [38,49). Most during [12,25): 25 + 8 + 4 + 8 = 45. c takes no buffer over: b:0 is being sent.
// d1 holds 5 + 16 of k, the copies b:0 [12,38), b:1 [22,38), c [30,47), and d [31,49), which is
// fetched. Most during [31,38): 21 + 8 + 4 + 8 + 3 = 44.
//
// For any timing: on d0, b:0 and b:1 may be there until u starts, c until the end, the copy of d
// from the finish of b. While c runs: 25 + 8 + 4 + 8 + 3 = 48. On d1 all copies may come at once.
//
// Longest path: r b d e, 2 + 10 + 7 + 4 = 23.
Story right_plan(Rules rules = {}, const std::string& graph = kGraph) {
  Story story(rules, graph);
  Plan& plan = story.plan;
  plan.placement.ops.resize(story.problem.graph().ops().size());
  plan.placement.variables.assign(1, d0);
  plan.sequences.resize(2);
  story.place("d0", {"r", "b", "c", "u"});
  story.place("d1", {"d", "e"});
  plan.prediction.start_ns.assign(story.problem.graph().ops().size(), 0);
  story.start("b", 2);
  story.start("c", 12);
  story.start("d", 31);
  story.start("e", 43);
  story.start("u", 46);
  story.send("b", 0, 0, 8, 12, 12, 25);
  story.send("b", 1, 0, 4, 12, 22, 31);
  story.send("b", std::nullopt, 0, 0, 12, 28, 33);
  story.send("c", 0, 0, 8, 17, 30, 43);
  story.send("d", 0, 1, 3, 38, 38, 46);
  plan.prediction.peaks.resize(2);
  story.peak(0) = {.bytes = 45, .at_ns = 12, .any_timing_bytes = 48};
  story.peak(1) = {.bytes = 44, .at_ns = 31, .any_timing_bytes = 44};
  plan.prediction.step_ns = 49;
  plan.prediction.bytes_sent = 8 + 4 + 8 + 3;
  plan.score = {.overflow_bytes = 0, .step_ns = 49, .bytes_sent = 23};
  plan.bound_ns = 23;
  return story;
}

// What the checker says once `change` has been made to the right plan.
std::string after(const std::function<void(Story&)>& change) {
  Story story = right_plan();
  change(story);
  return story.complaints();
}

// Whether it says, among other things, this.
bool says(const std::string& complaints, const std::string& part) {
  if (complaints.find(part) != std::string::npos) return true;
  BOOST_TEST_MESSAGE("it says: " << complaints);
  return false;
}

BOOST_AUTO_TEST_SUITE(check_plan)

BOOST_AUTO_TEST_CASE(a_right_plan_is_not_complained_about) {
  BOOST_TEST(right_plan().complaints() == "");
}

// --- times ---

BOOST_AUTO_TEST_CASE(an_op_that_starts_1_ns_early_or_late) {
  BOOST_TEST(after([](Story& s) { s.start("d", 30); }) ==
             "start of op d in ns: the plan says 30, it is 31");
  BOOST_TEST(after([](Story& s) { s.start("u", 47); }) ==
             "start of op u in ns: the plan says 47, it is 46");
}

BOOST_AUTO_TEST_CASE(a_constant_that_starts_at_some_time) {
  BOOST_TEST(after([](Story& s) { s.start("k", 1); }) ==
             "start of op k in ns: the plan says 1, it is 0");
}

BOOST_AUTO_TEST_CASE(a_step_that_is_too_short) {
  BOOST_TEST(after([](Story& s) { s.plan.prediction.step_ns = s.plan.score.step_ns = 48; }) ==
             "step in ns: the plan says 48, it is 49; "
             "step of the score in ns: the plan says 48, it is 49");
}

BOOST_AUTO_TEST_CASE(a_bound_above_the_step) {
  BOOST_TEST(after([](Story& s) { s.plan.bound_ns = 50; }) ==
             "the bound, 50 ns, is above the step, 49 ns");
}

// --- transfers ---

BOOST_AUTO_TEST_CASE(a_transfer_that_is_missing) {
  BOOST_TEST(after([](Story& s) {
               auto& transfers = s.plan.prediction.transfers;
               transfers.erase(transfers.begin() + 1);
             }) == "transfer of output 1 of b to d1 is missing");
}

BOOST_AUTO_TEST_CASE(a_control_edge_that_is_not_sent) {
  BOOST_TEST(after([](Story& s) {
               auto& transfers = s.plan.prediction.transfers;
               transfers.erase(transfers.begin() + 2);
             }) == "transfer of the control edge from b to d1 is missing");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_is_listed_twice) {
  BOOST_TEST(after([](Story& s) {
               auto& transfers = s.plan.prediction.transfers;
               transfers.insert(transfers.begin(), transfers.front());
             }) == "transfer of output 0 of b to d1: nobody there reads it, or it is listed twice");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_nobody_reads) {
  BOOST_TEST(after([](Story& s) { s.send("c", std::nullopt, 0, 0, 17, 40, 45); }) ==
             "transfer of the control edge from c to d1: nobody there reads it, or it is listed "
             "twice");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_overlaps_the_one_before_it_on_its_channel) {
  BOOST_TEST(after([](Story& s) { s.transfer(1).start_ns = 21; }) ==
             "transfer of output 1 of b to d1, start in ns: the plan says 21, it is 22");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_is_asked_for_early) {
  BOOST_TEST(after([](Story& s) { s.transfer(3).request_ns = 16; }) ==
             "transfer of output 0 of c to d1, request in ns: the plan says 16, it is 17");
}

BOOST_AUTO_TEST_CASE(a_transfer_that_arrives_late) {
  BOOST_TEST(after([](Story& s) { s.transfer(4).arrival_ns = 47; }) ==
             "transfer of output 0 of d to d0, arrival in ns: the plan says 47, it is 46");
}

BOOST_AUTO_TEST_CASE(a_transfer_of_other_bytes) {
  BOOST_TEST(after([](Story& s) { s.transfer(0).bytes = 9; }) ==
             "transfer of output 0 of b to d1, bytes: the plan says 9, it is 8");
}

BOOST_AUTO_TEST_CASE(a_transfer_from_where_its_producer_is_not) {
  BOOST_TEST(after([](Story& s) { s.transfer(0).from = d1; }) ==
             "transfer of output 0 of b to d1 leaves from the wrong device");
}

BOOST_AUTO_TEST_CASE(transfers_out_of_order) {
  BOOST_TEST(after([](Story& s) { std::swap(s.transfer(0), s.transfer(1)); }) ==
             "transfer of output 0 of b to d1 is listed after a later one");
}

BOOST_AUTO_TEST_CASE(a_transfer_of_what_the_graph_has_not) {
  BOOST_TEST(says(after([](Story& s) { s.transfer(0).output = 7; }),
                  "transfer of output 7 of b to d1: nobody there reads it"));
  BOOST_TEST(says(after([](Story& s) { s.transfer(0).producer = OpId{99}; }),
                  "there is a transfer of an op that the graph has not"));
  BOOST_TEST(says(after([](Story& s) { s.transfer(0).to = DeviceId{9}; }),
                  "there is a transfer of op b from or to a device that the machine has not"));
}

BOOST_AUTO_TEST_CASE(bytes_sent_that_are_no_sum) {
  BOOST_TEST(after([](Story& s) { s.plan.prediction.bytes_sent = 24; }) ==
             "bytes sent: the plan says 24, it is 23");
}

// --- memory ---

BOOST_AUTO_TEST_CASE(a_peak_that_is_off_by_one_byte) {
  BOOST_TEST(after([](Story& s) { s.peak(0).bytes = 44; }) ==
             "peak of d0 in bytes: the plan says 44, it is 45");
  BOOST_TEST(after([](Story& s) { s.peak(1).bytes = 45; }) ==
             "peak of d1 in bytes: the plan says 45, it is 44");
}

BOOST_AUTO_TEST_CASE(a_peak_at_another_moment) {
  BOOST_TEST(after([](Story& s) { s.peak(1).at_ns = 30; }) ==
             "moment of the peak of d1 in ns: the plan says 30, it is 31");
}

BOOST_AUTO_TEST_CASE(an_any_timing_peak_that_is_off) {
  BOOST_TEST(after([](Story& s) { s.peak(0).any_timing_bytes = 45; }) ==
             "any-timing peak of d0 in bytes: the plan says 45, it is 48");
}

// --- places ---

BOOST_AUTO_TEST_CASE(a_variable_apart_from_its_group) {
  BOOST_TEST(after([](Story& s) { s.plan.placement.variables[s.variable()] = d1; }) ==
             "group g is split: variable v is on d1, others are on d0");
}

BOOST_AUTO_TEST_CASE(an_op_apart_from_its_group) {
  BOOST_TEST(after([](Story& s) {
               s.place("d0", {"r", "b", "c"});
               s.place("d1", {"d", "e", "u"});
             }) == "group g is split: op u is on d1, others are on d0");
}

BOOST_AUTO_TEST_CASE(a_group_where_its_pin_does_not_let_it_be) {
  BOOST_TEST(says(after([](Story& s) {
                    s.place("d0", {"b", "c"});
                    s.place("d1", {"r", "d", "e", "u"});
                    s.plan.placement.variables[s.variable()] = d1;
                  }),
                  "group g is on d1 and may only be on d0"));
}

BOOST_AUTO_TEST_CASE(an_op_where_its_pin_forbids_it) {
  BOOST_TEST(after([](Story& s) {
               s.place("d0", {"r", "b", "u"});
               s.place("d1", {"c", "d", "e"});
             }) == "op c is on d1 and must not be there");
}

BOOST_AUTO_TEST_CASE(an_op_on_a_kind_that_it_has_no_cost_for) {
  Machine machine = Machine::uniform({.capacity_bytes = {9, 9}, .kind = "gpu"});
  machine.devices[d1].kind = "cpu";
  const Problem problem(read_pdg("pdg 1\nkind gpu cpu\nop a T 5,-\n", "story"), machine);
  Plan plan;
  plan.placement.ops.assign(1, d1);
  plan.sequences.resize(2);
  plan.sequences[d1] = {OpId{0}};
  plan.prediction.start_ns.assign(1, 0);
  plan.prediction.peaks.resize(2);
  const auto found = check(problem, plan);
  BOOST_REQUIRE(found.size() == 1);
  BOOST_TEST(found.front() == "op a is on d1, whose kind it has no cost for");
}

BOOST_AUTO_TEST_CASE(an_op_on_no_device) {
  BOOST_TEST(says(after([](Story& s) { s.plan.placement.ops[s.op("c")].reset(); }),
                  "op c is on no device"));
  BOOST_TEST(says(after([](Story& s) { s.plan.placement.ops[s.op("c")] = DeviceId{7}; }),
                  "op c is on no device"));
  BOOST_TEST(says(after([](Story& s) { s.plan.placement.variables[s.variable()] = DeviceId{7}; }),
                  "variable v is on no device"));
}

BOOST_AUTO_TEST_CASE(a_constant_that_is_placed) {
  BOOST_TEST(after([](Story& s) { s.plan.placement.ops[s.op("k")] = d1; }) ==
             "op k is an `every` op and is on d1");
}

// --- sequences ---

BOOST_AUTO_TEST_CASE(an_op_that_is_lost) {
  BOOST_TEST(after([](Story& s) { s.plan.sequences[d1].pop_back(); }) ==
             "op e is 0 times in the sequences, it must be 1");
}

BOOST_AUTO_TEST_CASE(an_op_that_runs_twice) {
  BOOST_TEST(after([](Story& s) { s.plan.sequences[d0].push_back(s.op("b")); }) ==
             "op b is 2 times in the sequences, it must be 1");
}

BOOST_AUTO_TEST_CASE(an_op_in_the_sequence_of_another_device) {
  BOOST_TEST(after([](Story& s) {
               std::swap(s.plan.sequences[d0].back(), s.plan.sequences[d1].back());
             }) ==
             "op e is in the sequence of d0 and is not placed there; "
             "op u is in the sequence of d1 and is not placed there");
}

BOOST_AUTO_TEST_CASE(a_constant_in_a_sequence) {
  BOOST_TEST(says(after([](Story& s) { s.plan.sequences[d1].push_back(s.op("k")); }),
                  "op k is 1 times in the sequences, it must be 0"));
}

BOOST_AUTO_TEST_CASE(an_op_in_a_sequence_that_the_graph_has_not) {
  BOOST_TEST(after([](Story& s) { s.plan.sequences[d1].push_back(OpId{99}); }) ==
             "the sequence of d1 holds an op that the graph has not");
}

// u waits for d until 46 and lets c wait, which starts at 49 then.
BOOST_AUTO_TEST_CASE(two_ops_of_a_sequence_in_the_other_order) {
  BOOST_TEST(
      says(after([](Story& s) { std::swap(s.plan.sequences[d0][2], s.plan.sequences[d0][3]); }),
           "start of op c in ns: the plan says 12, it is 49"));
}

BOOST_AUTO_TEST_CASE(a_sequence_against_an_edge) {
  BOOST_TEST(after([](Story& s) { std::swap(s.plan.sequences[d1][0], s.plan.sequences[d1][1]); }) ==
             "sequences and edges form a cycle: d waits for e waits for d");
}

// Each sequence alone follows the edges: c after b, u after d. Together they do not: c waits for u
// before it, u for d on the other device, d for e before it, and e for c.
BOOST_AUTO_TEST_CASE(sequences_that_form_a_cycle_together) {
  const std::string graph =
      "pdg 1\n"
      "op a T 1 > 1\n"
      "op x T 1 < b\n"
      "op b T 1 > 1\n"
      "op y T 1 < a\n";
  Story story({}, graph);
  story.plan.placement.ops.resize(4);
  story.plan.sequences.resize(2);
  story.plan.prediction.start_ns.assign(4, 0);
  story.plan.prediction.peaks.resize(2);
  story.place("d0", {"x", "a"});
  story.place("d1", {"y", "b"});
  BOOST_TEST(story.complaints() ==
             "sequences and edges form a cycle: a waits for x waits for b waits for y waits for a");
}

BOOST_AUTO_TEST_CASE(tables_of_the_wrong_size) {
  BOOST_TEST(after([](Story& s) {
               s.plan.placement.ops.resize(6);
               s.plan.sequences.resize(3);
               s.plan.prediction.start_ns.resize(9);
               s.plan.prediction.peaks.resize(1);
             }) ==
             "number of placed ops: the plan says 6, it is 7; "
             "number of start times: the plan says 9, it is 7; "
             "number of sequences: the plan says 3, it is 2; "
             "number of peaks: the plan says 1, it is 2");
}

// --- score ---

BOOST_AUTO_TEST_CASE(a_score_of_other_numbers) {
  BOOST_TEST(after([](Story& s) { s.plan.score.step_ns = 40; }) ==
             "step of the score in ns: the plan says 40, it is 49");
  BOOST_TEST(after([](Story& s) { s.plan.score.bytes_sent = 0; }) ==
             "bytes sent of the score: the plan says 0, it is 23");
  BOOST_TEST(after([](Story& s) { s.plan.score.overflow_bytes = 1; }) ==
             "overflow in bytes: the plan says 1, it is 0");
}

// With a margin of 100 per mille the limits are 45 - 4 and 44 - 4, exceeded by 4 each.
BOOST_AUTO_TEST_CASE(an_overflow_that_forgets_the_margin) {
  Story story = right_plan({.margin_per_mille = 100});
  BOOST_TEST(story.complaints() == "overflow in bytes: the plan says 0, it is 8");
  story.plan.score.overflow_bytes = 8;
  BOOST_TEST(story.complaints() == "");
}

// Planned for any timing, 48 bytes count against the 45 of d0.
BOOST_AUTO_TEST_CASE(an_overflow_that_forgets_the_any_timing_peak) {
  Story story = right_plan({.any_timing = true});
  BOOST_TEST(story.complaints() == "overflow in bytes: the plan says 0, it is 3");
}

// --- rules ---

BOOST_AUTO_TEST_CASE(a_prediction_that_lets_transfers_wait_where_they_do_not) {
  const std::string complaints = right_plan({.contention = false}).complaints();
  BOOST_TEST(
      says(complaints, "transfer of output 1 of b to d1, start in ns: the plan says 22, it is 12"));
  BOOST_TEST(says(complaints, "start of op d in ns: the plan says 31, it is 25"));
}

// First come, first served has no fixed sequences, and no any-timing peak.
BOOST_AUTO_TEST_CASE(an_any_timing_peak_where_there_is_none) {
  BOOST_TEST(right_plan({.dispatch = Dispatch::kFifo}).complaints() ==
             "any-timing peak of d0 in bytes: the plan says 48, it is 0; "
             "any-timing peak of d1 in bytes: the plan says 44, it is 0");
}

// c is ready at 12, long before u.
BOOST_AUTO_TEST_CASE(a_sequence_that_is_not_what_comes_first) {
  Story story = right_plan({.dispatch = Dispatch::kFifo});
  story.peak(0).any_timing_bytes = story.peak(1).any_timing_bytes = 0;
  BOOST_TEST(story.complaints() == "");
  std::swap(story.plan.sequences[d0][2], story.plan.sequences[d0][3]);
  BOOST_TEST(story.complaints() == "the sequence of d0 is not the order in which its ops start");
}

// The program has u before c.
BOOST_AUTO_TEST_CASE(a_sequence_against_the_given_order) {
  std::string graph =
      "pdg 1\n"
      "group g on=d0\n"
      "var v 20 @g\n"
      "op k Const 0 > 16 every=1\n"
      "op r Read 2 < v > =0 @g at=0\n"
      "op b Product 10 < r > 8 4 ws=6 at=1\n"
      "op c Sum 5 < b > 8~0 not=d1 at=4\n"
      "op d Loss 7 < b b:1 > 3* at=2\n"
      "op e Report 4 < c d k ^b at=5\n"
      "op u Update 3 < d !v ^r @g at=3\n";
  BOOST_TEST(says(right_plan({.given_order = true}, graph).complaints(),
                  "op u comes after c in a sequence, against the given order"));
}

BOOST_AUTO_TEST_CASE(a_transfer_where_there_is_no_link) {
  Story whole = right_plan();
  Machine machine = whole.problem.machine();
  machine.links[2].reset();  // from d1 to d0
  const Problem problem(whole.problem.shared_graph(), machine);
  const auto found = check(problem, whole.plan);
  BOOST_REQUIRE(found.size() == 1);
  BOOST_TEST(found.front() == "op d is read on d0, and d1 has no link to it");
}

BOOST_AUTO_TEST_CASE(no_more_is_said_than_was_asked_for) {
  Story story = right_plan();
  for (const char* key : {"b", "c", "d", "e", "u"}) story.start(key, 1);
  BOOST_TEST(check(story.problem, story.plan, 3).size() == 3);
  BOOST_TEST(check(story.problem, story.plan, 20).size() == 5);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
