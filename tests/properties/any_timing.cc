// The any-timing peak is what it is called: whatever ops and transfers really take, a plan's
// sequences lead to no higher peak (rule E1).
#include <memory>
#include <sstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"
#include "pardnn/sim/simulate.h"

#include "tests/properties/machines.h"
#include "tests/properties/tangle.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

// Each cost that a graph states becomes another, now and then a much longer one. `every` ops have
// none that counts.
std::shared_ptr<const Graph> with_other_costs(const Graph& graph, Random& random) {
  std::istringstream lines(write_pdg(graph));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string record, key, type, costs;
    words >> record >> key >> type >> costs;
    if (record == "op" && line.find(" every=1") == std::string::npos) {
      std::istringstream each(costs);
      std::string changed;
      for (std::string cost; std::getline(each, cost, ',');) {
        if (cost != "-") cost = std::to_string(random.between(0, random.below(4) == 0 ? 300 : 3));
        changed += (changed.empty() ? "" : ",") + cost;
      }
      std::string rest;
      std::getline(words, rest);
      line = record + " " + key + " " + type + " " + changed + rest;
    }
    text += line + "\n";
  }
  return read_pdg(text, "with other costs");
}

Machine with_other_links(Machine machine, Random& random) {
  for (auto& link : machine.links) {
    if (!link) continue;
    const bool is_slow = random.below(2) == 0;
    link->bytes_per_second = is_slow ? 50'000'000 : 1'000'000'000'000;
    link->overhead_ns = 0;
    link->latency_ns = random.between(0, is_slow ? 300 : 0);
  }
  return machine;
}

Findings try_timings(std::size_t number) {
  Random random(number);
  Findings findings("tangle " + std::to_string(number));
  const auto graph = make_tangle(3 + random.below(40), number);
  const Problem problem(graph, uneven_machine(2 + random.below(3), kPlenty, 4, true));
  const auto plan = random_plan(findings, problem, random.next());
  if (!plan) return findings;
  for (int n = 0; n < 10; ++n) {
    const Problem other(with_other_costs(*graph, random),
                        with_other_links(problem.machine(), random));
    Sequences sequences = plan->sequences;
    const auto real = predict(other, plan->placement, sequences);
    findings.count_plan();
    findings.expect(real.has_value(), "the same sequences are no plan with other times");
    if (!real) continue;
    for (const DeviceId device : problem.devices()) {
      findings.expect(real->peaks[device].bytes <= plan->prediction.peaks[device].any_timing_bytes,
                      "with other times the peak of " + problem.machine().devices[device].name +
                          " is " + std::to_string(real->peaks[device].bytes) +
                          ", above the any-timing peak of " +
                          std::to_string(plan->prediction.peaks[device].any_timing_bytes));
      findings.expect(
          real->peaks[device].any_timing_bytes == plan->prediction.peaks[device].any_timing_bytes,
          "the any-timing peak depends on times");
    }
  }
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_the_any_timing_peak)

BOOST_AUTO_TEST_CASE(no_timing_of_the_same_sequences_passes_it) {
  run_trials("timings", 500, try_timings);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
