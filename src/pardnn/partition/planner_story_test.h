// PlannerStory: a graph as text and what planners answer about it, as text that a test can compare.
// For tests only.
#pragma once

#include <string>
#include <vector>

#include "pardnn/check/check.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/partition/flow.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"
#include "pardnn/sim/story_test.h"

namespace pardnn {

// Devices d0, d1, ... of 1000 bytes each; a byte takes 1 ns on every link.
class PlannerStory {
 public:
  explicit PlannerStory(const std::string& graph, const Machine& machine = StoryMachine{}.build(),
                        Rules rules = {})
      : problem(read_pdg("pdg 1\n" + graph, "story"), machine, rules),
        times(problem),
        flow(problem, times) {}

  OpId op(const std::string& key) const { return *problem.graph().find_op(key); }
  UnitId unit(const std::string& key) const { return *problem.unit(op(key)); }
  NodeId node(const std::string& key) const {
    for (const NodeId node : flow.nodes()) {
      for (const OpId member : flow.ops(node)) {
        if (member == op(key)) return node;
      }
    }
    PARDNN_CHECK(false);
  }

  // "a b | c": the ops of each device, in the order given; devices without any are empty.
  std::string text(const Proposal& proposal) const {
    std::string answer;
    for (const DeviceId device : problem.devices()) {
      if (device != DeviceId{}) answer += answer.empty() || answer.back() == ' ' ? "| " : " | ";
      std::string ops;
      for (const OpId op : proposal.order) {
        if (proposal.placement[*problem.unit(op)] != device) continue;
        ops += (ops.empty() ? "" : " ") + std::string(problem.graph().key(op));
      }
      answer += ops;
    }
    return answer;
  }

  // "a b, c": the keys of each list's ops.
  std::string text(const std::vector<std::vector<NodeId>>& clusters) const {
    std::string answer;
    for (std::size_t n = 0; n < clusters.size(); ++n) {
      if (n > 0) answer += ", ";
      std::string keys;
      for (const NodeId node : clusters[n]) {
        for (const OpId op : flow.ops(node)) {
          keys += (keys.empty() ? "" : " ") + std::string(problem.graph().key(op));
        }
      }
      answer += keys.empty() ? "-" : keys;
    }
    return answer;
  }

  // "a=0 b=1": of every op, in the order of ids.
  template <class Of>
  std::string each_op(Of of) const {
    std::string answer;
    for (const OpId op : problem.graph().ops()) {
      if (problem.graph().is_every(op)) continue;
      answer += (answer.empty() ? "" : " ") + std::string(problem.graph().key(op)) + "=" +
                std::to_string(of(op));
    }
    return answer;
  }
  std::string text(const UnitPlacement& placement) const {
    return each_op([&](OpId op) { return index(placement[*problem.unit(op)]); });
  }

  // "a=0 b=1" back into a placement; units that are not named stay on d0.
  UnitPlacement placed(const std::string& words) const {
    UnitPlacement placement(problem.units().size(), DeviceId{});
    std::istringstream in(words);
    for (std::string word; in >> word;) {
      const std::size_t equals = word.find('=');
      const std::string key = word.substr(0, equals);
      const DeviceId device{static_cast<std::uint32_t>(std::stoul(word.substr(equals + 1)))};
      if (const auto op = problem.graph().find_op(key)) {
        placement[*problem.unit(*op)] = device;
      } else {
        placement[problem.unit(*problem.graph().find_variable(key))] = device;
      }
    }
    return placement;
  }

  Plan plan(std::string_view algorithm) const { return make_plan(problem, algorithm, {}); }

  Problem problem;
  Times times;
  Flow flow;
};

// What the checker finds wrong with a row's plan; empty: nothing.
inline std::string faults(const Problem& problem, const Plan& plan) {
  std::string answer;
  for (const std::string& fault : check(problem, plan)) answer += fault + "\n";
  return answer;
}

}  // namespace pardnn
