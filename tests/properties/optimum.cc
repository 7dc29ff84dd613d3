// Bounds against the truth: no bound is above what the best of all plans of a small problem needs.
#include <cstdlib>
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/plan/bound.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"

#include "tests/properties/exhaustive.h"
#include "tests/properties/machines.h"
#include "tests/properties/tangle.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

std::size_t trial_count(std::size_t few, std::size_t many) {
  return std::getenv("PARDNN_STRESS") != nullptr ? many : few;
}

// Ops with as much to compute as to send, in few or many edges, some in groups, some pinned.
std::shared_ptr<const Graph> make_web(std::size_t ops, bool has_kinds, Random& random) {
  std::string text = has_kinds ? "pdg 1\nkind gpu cpu\n" : "pdg 1\n";
  const std::uint32_t density = random.below(6);
  const std::uint32_t grouping = random.below(3);
  for (std::size_t op = 0; op < ops; ++op) {
    text += "op k" + std::to_string(op) + " T " + std::to_string(random.below(12));
    if (has_kinds) text += random.below(8) == 0 ? ",-" : "," + std::to_string(random.below(40));
    std::string before;
    for (std::size_t other = 0; other < op; ++other) {
      if (random.below(6) > density) continue;
      const char* shapes[] = {" ^k", " k", " k"};
      before += shapes[random.below(3)] + std::to_string(other);
      if (random.below(3) == 0) before += " k" + std::to_string(other) + ":1";
    }
    if (!before.empty()) text += " <" + before;
    text += " > " + std::to_string(random.below(12)) + " " + std::to_string(random.below(12));
    if (random.below(6) < grouping)
      text += " @g" + std::to_string(random.below(2));
    else if (random.below(8) == 0 && !has_kinds)
      text += " on=d" + std::to_string(random.below(2));
    text += "\n";
  }
  return read_pdg(text, "web");
}

std::size_t ordinary_ops(const Graph& graph) {
  std::size_t count = 0;
  for (const OpId op : graph.ops()) count += !graph.is_every(op);
  return count;
}

// Of a web or a tangle, on equal devices or such where nothing is equal.
Problem small_problem(std::size_t number, std::int64_t capacity_bytes) {
  Random random(number);
  const auto devices = static_cast<std::size_t>(random.between(2, 3));
  const auto ops = static_cast<std::size_t>(random.between(2, devices == 2 ? 7 : 6));
  const bool is_tangle = random.below(4) == 0;
  const auto graph =
      is_tangle ? make_tangle(ops, number) : make_web(ops, random.below(3) == 0, random);
  const Rules rules{.dispatch = random.below(8) == 0 ? Dispatch::kFifo : Dispatch::kSequence,
                    .contention = random.below(2) == 0};
  if (graph->kinds().size() > 1 || random.below(3) == 0) {
    return Problem(graph, uneven_machine(devices, capacity_bytes, 1, true), rules);
  }
  return Problem(
      graph,
      Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(devices, capacity_bytes),
                        .bytes_per_second = random.between(1, 4) * 500'000'000,
                        .overhead_ns = random.between(0, 8),
                        .latency_ns = random.between(0, 3)}),
      rules);
}

Findings try_time(std::size_t number) {
  Findings findings("problem " + std::to_string(number));
  const Problem problem = small_problem(number, kPlenty);
  if (ordinary_ops(problem.graph()) > kMostExhaustiveOps) return findings;
  const auto best = best_of_all(problem);
  if (!best) return findings;
  findings.count_plan();
  const std::int64_t bound = lower_bound_ns(problem);
  findings.expect(bound <= best->score.step_ns, "the bound is " + std::to_string(bound) +
                                                    " ns, above the best step of " +
                                                    std::to_string(best->score.step_ns) +
                                                    " ns of\n" + write_pdg(problem.graph()));
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_the_optimum)

BOOST_AUTO_TEST_CASE(no_step_is_shorter_than_the_lower_bound) {
  run_trials("optimum", trial_count(2'000, 100'000), try_time);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
