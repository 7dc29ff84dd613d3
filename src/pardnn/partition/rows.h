// The rows: whole planners by name, each a function in one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/plan/plan.h"
#include "pardnn/partition/run.h"

namespace pardnn {

// What a row answers: where every unit goes and in which order. The runner simulates, scores and
// records it; a row never does.
struct Proposal {
  UnitPlacement placement;
  std::vector<OpId> order;  // one order of all ordinary ops that respects the edges
};

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

struct Row {
  std::string_view name, summary;
  Proposal (*run)(const Problem&, const Run&);
  bool repaired = true;  // its answer goes through the memory repair when it does not fit
  bool needs_scarcity =
      false;  // `auto` leaves it out where memory is plenty: it would repeat another
  std::size_t most_ops = kNoLimit;  // `auto` leaves it out above, and when time is up
};

std::span<const Row> rows();  // in the order in which `auto` tries them; `auto` is not among them
// The row's name, or "auto"; nothing for an unknown name.
bool is_algorithm(std::string_view name);
std::vector<std::string_view> algorithm_names();

// A proposal made elsewhere, and whose it is.
struct Start {
  std::string who;
  Proposal proposal;
};

// Runs one row, or `auto`, its repair where memory asks for it, and the lower bound. `auto` is
// never worse than any of `starts` that can run. The plan that comes back is the best found,
// confirmed by the checker; when it does not fit its score says so.
Plan make_plan(const Problem& problem, std::string_view algorithm, const Run& run,
               std::span<const Start> starts = {});

}  // namespace pardnn
