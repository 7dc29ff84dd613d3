// Trials: many problems tried on all cores, with a list of what was broken and the seed to repeat
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"
#include "pardnn/partition/run.h"

namespace pardnn::properties {

// What one trial finds out. Every sentence is a promise that did not hold.
class Findings {
 public:
  explicit Findings(std::string where) : where_(std::move(where)) {}

  void expect(bool holds, const std::string& sentence) {
    if (!holds) broken_.push_back(where_ + ": " + sentence);
  }
  void count_plan() { ++plans_; }

  const std::vector<std::string>& broken() const { return broken_; }
  std::int64_t plans() const { return plans_; }

 private:
  std::string where_;
  std::vector<std::string> broken_;
  std::int64_t plans_ = 0;
};

// A trial by its number; makes its own problem from that number alone.
using Trial = std::function<Findings(std::size_t number)>;

// Whether trials are to go on for long: PARDNN_STRESS is set.
bool is_stress();

// Runs trials 0 … count - 1 on as many threads as there are cores, reports through Boost.Test what
// was broken (the first few), and says how many plans were looked at. After `limit` none begins.
void run_trials(std::string_view what, std::size_t count, const Trial& trial,
                std::chrono::seconds limit = std::chrono::hours(24));

// --- promises of every plan, whoever made it ---

// Nothing for the checker to complain about, units whole and where they may be, bound below step,
// `fits` as the peaks say, a text that says why it does not fit if it does not.
void expect_sound(Findings& findings, const Problem& problem, const Plan& plan);

// Few steps of search, for many graphs.
Run short_run(std::uint64_t seed);

// One row, or `auto`, and the promises of its plan. Anything thrown is a finding.
std::optional<Plan> sound_plan(Findings& findings, const Problem& problem, std::string_view row,
                               std::uint64_t seed);

// The plans of all rows, and of `auto`, which is at least as good as each.
void expect_sound_rows(Findings& findings, const Problem& problem, std::uint64_t seed);

// The same plan again, and from the graph's lines in any order.
void expect_repeatable(Findings& findings, const Problem& problem, std::string_view row,
                       std::uint64_t seed);

// Units on random devices that they may be on, ops in a random order that respects the edges.
// Nothing, and a finding, when the simulator sees no plan in that.
std::optional<Plan> random_plan(Findings& findings, const Problem& problem, std::uint64_t seed);
void expect_sound_random_plan(Findings& findings, const Problem& problem, std::uint64_t seed);

// Bytes that the row `one-device` needs on all devices together, what is set aside not counted.
std::int64_t one_device_bytes(const Problem& problem);

}  // namespace pardnn::properties
