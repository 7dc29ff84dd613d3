// pardnn_favourites: row `m-sct` with favourites that somebody else chose.
//
// usage: pardnn_favourites edges|steps GRAPH DEVICES MEMORY_BYTES BYTES_PER_SECOND OVERHEAD_NS
// `edges` writes the durations of all ops and, of every edge, its ends and how long it takes to
// cross. `steps` reads favourites, a line "producer reader" each, and writes the step times with
// them, with the favourites that the row chooses itself, and with none. Both write JSON.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "pardnn/base/error.h"
#include "pardnn/base/quantity.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/byte_caps.h"
#include "pardnn/partition/edges.h"
#include "pardnn/partition/memory_capped.h"

namespace {

using namespace pardnn;

std::int64_t number(const char* text) {
  const auto value = parse_integer(text);
  if (!value) throw Error(std::string("found '") + text + "', expected a number");
  return *value;
}

Problem problem_of(char** words) {
  Machine::Uniform machine;
  machine.capacity_bytes.assign(static_cast<std::size_t>(number(words[1])), number(words[2]));
  machine.bytes_per_second = number(words[3]);
  machine.overhead_ns = number(words[4]);
  return Problem(read_pdg_file(words[0]), Machine::uniform(machine), {});
}

void write_edges(const Problem& problem) {
  const Graph& graph = problem.graph();
  const Times times(problem);
  std::printf("{\"durations_ns\": [");
  for (const OpId op : graph.ops()) {
    const std::int64_t ns = graph.is_every(op) ? 0 : problem.mean_duration_ns(op);
    std::printf("%s%lld", index(op) == 0 ? "" : ", ", static_cast<long long>(ns));
  }
  std::printf("], \"edges\": [");
  const char* comma = "";
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for_each_reader(graph, op, [&](OpId reader, std::optional<TensorId> tensor) {
      std::printf("%s[%u, %u, %lld]", comma, index(op), index(reader),
                  static_cast<long long>(times.mean_crossing_ns(tensor)));
      comma = ", ";
    });
  }
  std::printf("]}\n");
}

FavouriteOf read_favourites(const Problem& problem, const Times& times) {
  const Graph& graph = problem.graph();
  FavouriteOf parent(graph.ops().size());
  std::uint32_t producer = 0, reader = 0;
  while (std::cin >> producer >> reader) {
    for_each_reader(graph, OpId{producer}, [&](OpId other, std::optional<TensorId> tensor) {
      if (other != OpId{reader}) return;
      parent[other] = {.op = OpId{producer}, .crossing_ns = times.mean_crossing_ns(tensor)};
    });
  }
  return parent;
}

void write_steps(const Problem& problem) {
  const Times times(problem);
  Trial trial(problem);
  const auto step_ns = [&](const FavouriteOf* favourite_of) {
    const Proposal proposal = earliest_task_first(
        problem, times, bottom_levels(problem, times),
        {.bytes_per_mille = cap_per_mille(problem), .favourite_of = favourite_of});
    return static_cast<long long>(trial.score(proposal)->step_ns);
  };
  const FavouriteOf given = read_favourites(problem, times), own = favourites(problem, times);
  std::printf("{\"given_ns\": %lld, \"own_ns\": %lld, \"none_ns\": %lld}\n", step_ns(&given),
              step_ns(&own), step_ns(nullptr));
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count == 7 ? words[1] : "";
  if (what != "edges" && what != "steps") {
    std::fprintf(stderr,
                 "usage: pardnn_favourites edges|steps GRAPH DEVICES MEMORY_BYTES "
                 "BYTES_PER_SECOND OVERHEAD_NS\n");
    return 2;
  }
  try {
    const Problem problem = problem_of(words + 2);
    what == "edges" ? write_edges(problem) : write_steps(problem);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pardnn_favourites: %s\n", error.what());
    return 2;
  }
}
