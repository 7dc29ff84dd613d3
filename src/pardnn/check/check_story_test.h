// A right plan with its prediction, worked by hand, and what the checker says after a change.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pardnn/check/check.h"
#include "pardnn/io/pdg_reader.h"

namespace pardnn::checking_story {

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
inline Story right_plan(Rules rules = {}, const std::string& graph = kGraph) {
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
inline std::string after(const std::function<void(Story&)>& change) {
  Story story = right_plan();
  change(story);
  return story.complaints();
}

// Whether it says, among other things, this.
inline bool says(const std::string& complaints, const std::string& part) {
  if (complaints.find(part) != std::string::npos) return true;
  BOOST_TEST_MESSAGE("it says: " << complaints);
  return false;
}

}  // namespace pardnn::checking_story
