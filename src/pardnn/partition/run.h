// Run: what a planner is given besides the problem: seed, stop flag, budget and a place to report.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace pardnn {

struct Run {
  std::uint64_t seed = 0;
  std::optional<std::chrono::nanoseconds> budget;       // of the whole answer; nothing: no limit
  std::optional<std::int64_t> steps;                    // of the search; wins over the budget
  const std::atomic<bool>* stop = nullptr;              // set from outside: give the best so far
  std::function<void(std::string_view what)> progress;  // may be empty

  // When the budget ends; set by the runner when it starts.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};

  bool stopped() const {
    return (stop != nullptr && stop->load(std::memory_order_relaxed)) ||
           (deadline.has_value() && std::chrono::steady_clock::now() >= *deadline);
  }
};

}  // namespace pardnn
