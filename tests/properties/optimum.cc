// Bounds against the truth: no bound is above what the best of all plans of a small problem needs.
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/plan/bound.h"
#include "pardnn/plan/impossible.h"
#include "pardnn/plan/memory_bound.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"
#include "pardnn/partition/rows.h"

#include "tests/properties/exhaustive.h"
#include "tests/properties/machines.h"
#include "tests/properties/tangle.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

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

std::int64_t sum_of_peaks(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Peak& peak : plan.prediction.peaks) bytes += peak.bytes;
  return bytes;
}

// With so much of the least that all devices need, in per mille, on each in equal parts.
Problem tight_problem(std::size_t number, std::int64_t per_mille) {
  const Problem roomy = small_problem(number, kPlenty);
  std::int64_t bytes = memory_bound(roomy).bytes;
  for (const DeviceId device : roomy.devices()) bytes -= roomy.reserve_bytes(device);
  return small_problem(number,
                       bytes * per_mille / 1'000 / static_cast<std::int64_t>(roomy.device_count()));
}

// Memory about as large as the least that is needed: some plans fit, or none.
Findings try_memory(std::size_t number) {
  Findings findings("problem " + std::to_string(number));
  const Problem problem = tight_problem(number, Random(number).between(500, 1'600));
  if (ordinary_ops(problem.graph()) > kMostExhaustiveOps) return findings;
  const auto best = best_of_all(problem);
  const auto reasons = proven_impossible(problem);
  findings.count_plan();
  if (best && best->score.fits() && !reasons.empty()) {
    findings.expect(false, "a plan fits, and it is said that " +
                               sentence(problem, reasons.front()) + ":\n" +
                               write_pdg(problem.graph()));
  }
  return findings;
}

// The search knows all rules: it finds what fits, and comes close to the best.
Findings try_search(std::size_t number) {
  Findings findings("problem " + std::to_string(number));
  const bool is_tight = number % 2 == 0;
  const Problem problem = is_tight ? tight_problem(number, Random(number).between(1'000, 2'500))
                                   : small_problem(number, kPlenty);
  if (ordinary_ops(problem.graph()) > kMostExhaustiveOps) return findings;
  const auto best = best_of_all(problem);
  if (!best || !best->score.fits()) return findings;
  Run run;
  run.steps = is_stress() ? 200 : 40;
  const Score score = score_of(problem, make_plan(problem, "auto", run).prediction);
  findings.count_plan();
  findings.expect(score.fits() && score.step_ns * 20 <= best->score.step_ns * 21,
                  "auto needs " + std::to_string(score.step_ns) + " ns and overflows by " +
                      std::to_string(score.overflow_bytes) + " bytes, the best plan needs " +
                      std::to_string(best->score.step_ns) + " ns:\n" + write_pdg(problem.graph()));
  return findings;
}

// However it is placed and ordered.
Findings try_any_plan(std::size_t number) {
  Findings findings("tangle " + std::to_string(number));
  Random random(number);
  const auto graph = make_tangle(3 + random.below(40), number);
  const Problem problem(graph, uneven_machine(2 + random.below(3), kPlenty, 4, true));
  const std::int64_t bound = memory_bound(problem).bytes;
  for (int n = 0; n < 5; ++n) {
    const auto plan = random_plan(findings, problem, random.next());
    if (!plan) continue;
    findings.count_plan();
    findings.expect(bound <= sum_of_peaks(*plan),
                    "the devices hold " + std::to_string(sum_of_peaks(*plan)) +
                        " bytes together, and the bound is " + std::to_string(bound));
  }
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_the_optimum)

BOOST_AUTO_TEST_CASE(no_step_is_shorter_than_the_lower_bound) {
  run_trials("optimum", is_stress() ? 100'000 : 10'000, try_time);
}

BOOST_AUTO_TEST_CASE(nothing_that_fits_is_called_impossible) {
  run_trials("impossible", is_stress() ? 50'000 : 5'000, try_memory);
}

BOOST_AUTO_TEST_CASE(auto_is_close_to_the_best_plan) {
  run_trials("search", is_stress() ? 10'000 : 200, try_search);
}

BOOST_AUTO_TEST_CASE(no_plan_holds_less_than_the_bound_on_memory) {
  run_trials("memory bound", is_stress() ? 50'000 : 1'000, try_any_plan);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
