// pardnn_bench: CPU seconds of reading, simulating and planning, as one JSON line per measurement.
//
// usage: pardnn_bench FAMILY OPS DEVICES REPEATS
// CPU time of the process, for the machine may be shared; the least of the repeats.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pardnn/base/error.h"
#include "pardnn/graph/generate.h"
#include "pardnn/plan/bound.h"
#include "pardnn/check/check.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"
#include "pardnn/partition/rows.h"
#include "pardnn/sim/simulate.h"

namespace {

using namespace pardnn;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double least_seconds(int repeats, const std::function<void()>& work) {
  double least = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double before = cpu_seconds();
    work();
    least = std::min(least, cpu_seconds() - before);
  }
  return least;
}

void print(const std::string& what, double seconds) {
  std::printf("{\"what\": \"%s\", \"cpu_seconds\": %.6f}\n", what.c_str(), seconds);
  std::fflush(stdout);
}

// The same graph with keys as frameworks write them, names of layers inside layers.
std::string with_long_keys(const std::string& text) {
  const std::string scope = "gradient_tape/functional_1/multi_head_attention_2_1/attention_output/";
  std::string longer;
  std::size_t at = 0;
  const auto word = [&] {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string found = text.substr(at, end - at);
    at = end;
    return found;
  };
  while (at < text.size()) {
    const std::string record = word();
    longer += record;
    const bool has_keys = record == "op" || record == "var";
    bool in_inputs = false;
    for (int n = 1; at < text.size() && text[at] != '\n'; ++n) {
      ++at;
      std::string next = word();
      if (next == ">" || next.find_first_of("@=") != std::string::npos) in_inputs = false;
      if (has_keys && (n == 1 || in_inputs)) {
        next.insert(next.find_first_not_of("^!"), scope);
      }
      if (next == "<") in_inputs = true;
      longer += ' ' + next;
    }
    if (at < text.size()) longer += text[at++];
  }
  return longer;
}

int run(const std::string& family, std::size_t ops, std::size_t devices, int repeats) {
  const Family* found = find_family(family);
  if (found == nullptr) throw Error("found the family " + family + ", expected one there is");
  const std::string text = write_pdg(*found->make(ops, 0));
  std::shared_ptr<const Graph> graph;
  print("read", least_seconds(repeats, [&] { graph = read_pdg(text, "graph"); }));
  const std::string long_keys = with_long_keys(text);
  print("read, long keys", least_seconds(repeats, [&] { read_pdg(long_keys, "graph"); }));
  Machine::Uniform uniform;
  uniform.capacity_bytes.assign(devices, std::int64_t{1} << 60);
  uniform.bytes_per_second = 50'000'000'000;
  uniform.overhead_ns = 10'000;
  std::unique_ptr<Problem> problem;
  print("problem", least_seconds(repeats, [&] {
          problem = std::make_unique<Problem>(graph, Machine::uniform(uniform));
        }));
  print("bound", least_seconds(repeats, [&] { lower_bound_ns(*problem); }));
  Plan plan;
  for (const Row& row : rows()) {
    print("row " + std::string(row.name), least_seconds(1, [&] { row.run(*problem, Run{}); }));
  }
  plan = make_plan(*problem, "etf", Run{});
  Simulator simulator(*problem);
  Sequences sequences = plan.sequences;
  print("schedule", least_seconds(repeats, [&] { simulator.schedule(plan.placement, sequences); }));
  // A score counts no memory where it is plenty.
  print("simulate with memory", least_seconds(repeats, [&] {
          simulator.schedule(plan.placement, sequences);
          simulator.peaks(false);
        }));
  print("predict", least_seconds(1, [&] { predict(*problem, plan.placement, sequences); }));
  print("check", least_seconds(1, [&] { PARDNN_CHECK(check(*problem, plan).empty()); }));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: pardnn_bench FAMILY OPS DEVICES REPEATS\n");
    return 2;
  }
  try {
    return run(words[1], std::strtoul(words[2], nullptr, 10), std::strtoul(words[3], nullptr, 10),
               std::atoi(words[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pardnn_bench: %s\n", error.what());
    return 2;
  }
}
