// The table of rows, and the runner that makes a plan of what they propose.
#include "pardnn/partition/rows.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <optional>

#include "pardnn/base/ahead.h"
#include "pardnn/base/error.h"
#include "pardnn/problem/plenty.h"
#include "pardnn/plan/bound.h"
#include "pardnn/partition/best.h"
#include "pardnn/partition/chunks.h"
#include "pardnn/partition/confirm.h"
#include "pardnn/partition/cut.h"
#include "pardnn/partition/etf.h"
#include "pardnn/partition/fit.h"
#include "pardnn/partition/heft.h"
#include "pardnn/partition/memory_capped.h"
#include "pardnn/partition/one_device.h"
#include "pardnn/partition/pardnn.h"
#include "pardnn/partition/polish.h"
#include "pardnn/partition/search.h"
#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

constexpr std::string_view kAuto = "auto";

constexpr std::array kRows = {
    Row{.name = "one-device",
        .summary = "everything on the device where it takes least time",
        .run = one_device,
        .repaired = false},
    Row{.name = "chunks",
        .summary = "the order of the ops cut into one piece per device, by time and bytes",
        .run = chunks,
        .repaired = false},
    Row{.name = "etf", .summary = "list scheduling, what can start earliest first", .run = etf},
    Row{.name = "heft",
        .summary = "list scheduling, the longest path first to where it finishes first",
        .run = heft},
    Row{.name = "m-etf",
        .summary = "etf with a cap on the bytes of each device",
        .run = m_etf,
        .needs_scarcity = true},
    Row{.name = "m-sct",
        .summary = "m-etf that keeps an op's favourite reader beside it",
        .run = m_sct},
    Row{.name = "cut",
        .summary = "the graph cut where least is sent, work and bytes shared out evenly",
        .run = cut,
        .most_ops = 300'000},
    Row{.name = "pardnn",
        .summary = "the published method: critical paths, mapped clusters, refinement",
        .run = pardnn_row,
        .most_ops = 300'000},
};

const Row* find_row(std::string_view name) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& candidate) { return candidate.name == name; });
  return row == kRows.end() ? nullptr : &*row;
}

std::vector<const Row*> rows_of(const Problem& problem, std::string_view algorithm) {
  std::vector<const Row*> found;
  for (const Row& row : kRows) {
    const bool is_asked =
        algorithm == kAuto ? problem.graph().ops().size() <= row.most_ops : algorithm == row.name;
    if (is_asked) found.push_back(&row);
  }
  return found;
}

// A third of what is left of the budget: the search makes more of the rest.
Run part_of(const Run& run) {
  Run part = run;
  if (run.deadline.has_value()) {
    const auto now = std::chrono::steady_clock::now();
    part.deadline = std::min(*run.deadline, now + (*run.deadline - now) / 3);
  }
  return part;
}

}  // namespace

std::span<const Row> rows() { return kRows; }

bool is_algorithm(std::string_view name) { return name == kAuto || find_row(name) != nullptr; }

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names{kAuto};
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

Plan make_plan(const Problem& problem, std::string_view algorithm, const Run& asked,
               std::span<const Start> starts) {
  PARDNN_CHECK(is_algorithm(algorithm));
  Run run = asked;
  if (run.budget.has_value() && !run.deadline.has_value()) {
    run.deadline = std::chrono::steady_clock::now() + *run.budget;
  }
  // It takes as long as some rows together and asks nothing of them.
  std::future<std::int64_t> bound =
      std::async(std::launch::async, [&problem] { return lower_bound_ns(problem); });
  Best best(problem);
  const Times times(problem);
  if (algorithm == kAuto) {
    for (const Start& start : starts) best.offer(start.who, start.proposal);
  }
  const std::vector<const Row*> asked_rows = rows_of(problem, algorithm);
  std::vector<Proposed> proposed;
  const auto propose = [&](std::size_t n) -> std::optional<Proposal> {
    // What always answers has answered by then.
    const bool may_be_left_out = algorithm == kAuto && asked_rows[n]->most_ops != kNoLimit;
    if (may_be_left_out && run.stopped()) return std::nullopt;
    return asked_rows[n]->run(problem, run);
  };
  done_ahead(asked_rows.size(), propose, [&](std::size_t n, std::optional<Proposal> proposal) {
    if (!proposal.has_value()) return;
    const Row& row = *asked_rows[n];
    if (run.progress) run.progress(row.name);
    const std::optional<Score> score = best.offer(row.name, *proposal);
    proposed.push_back({row.name, std::move(*proposal), score, row.repaired});
  });
  // A row may ask for links that are not there.
  if (best.empty()) best.offer(kRows.front().name, one_device(problem, run));
  // Also where another row's answer fits: this one may be shorter once it does.
  if (std::ranges::any_of(proposed, &Proposed::overflows)) {
    if (algorithm == kAuto) {
      fit_into_memory(best, times, proposed, run);
    } else {
      repair_rows(best, times, proposed, run);
    }
  }
  if (best.empty()) {
    throw Error(
        "machine: found no link where ops on different devices must exchange tensors, "
        "expected one from every device to every other");
  }
  const std::int64_t bound_ns = bound.get();
  std::int64_t steps = 0;
  if (algorithm == kAuto) {
    polish(best, times, part_of(run));
    steps = search(best, bound_ns, run);
  }
  Plan plan = finished_plan(best, run);
  plan.bound_ns = bound_ns;
  plan.steps = steps;
  confirm(problem, plan);
  return plan;
}

}  // namespace pardnn
