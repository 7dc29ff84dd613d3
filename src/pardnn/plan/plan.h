// Plan: the answer. Which device runs each op, in which order, and what is predicted of it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pardnn/base/ids.h"
#include "pardnn/base/table.h"
#include "pardnn/problem/problem.h"

namespace pardnn {

// Device of every unit: what planners work on.
using UnitPlacement = Table<UnitId, DeviceId>;

// Device of every op and variable: what a plan states. `every` ops have none.
struct Placement {
  Table<OpId, std::optional<DeviceId>> ops;
  Table<VariableId, DeviceId> variables;
  friend bool operator==(const Placement&, const Placement&) = default;
};

Placement expand(const Problem& problem, const UnitPlacement& units);

// The order in which each device starts its ops.
using Sequences = Table<DeviceId, std::vector<OpId>>;

// The sequences that follow one order of all ops (a permutation without the `every` ops). Where the
// rules ask for the given order (rule D4b), that one is followed instead.
Sequences sequences_of(const Problem& problem, const Placement& placement,
                       std::span<const OpId> order);

// A tensor, or the signal of a control edge, sent to another device once (rules T1, T7).
struct Transfer {
  OpId producer;
  std::optional<std::uint32_t> output;  // nothing: a control edge
  DeviceId from, to;
  std::int64_t bytes = 0;
  std::int64_t request_ns = 0, start_ns = 0, arrival_ns = 0;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

struct Peak {
  std::int64_t bytes = 0;             // most bytes in use at one moment, reserve included
  std::int64_t at_ns = 0;             // the first moment of it
  std::int64_t any_timing_bytes = 0;  // bound for any timing of the same sequences (rule E1)
  friend bool operator==(const Peak&, const Peak&) = default;
};

// What the model says will happen. Transfers are ordered by (start, producer, output with control
// edges last, to).
struct Prediction {
  Table<OpId, std::int64_t> start_ns;  // 0 for `every` ops
  std::vector<Transfer> transfers;
  Table<DeviceId, Peak> peaks;
  std::int64_t step_ns = 0;
  std::int64_t bytes_sent = 0;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

// Answers are compared by this and nothing else (rule X5); smaller is better.
struct Score {
  std::int64_t overflow_bytes = 0;  // sum over devices of what their peak exceeds their limit by
  std::int64_t step_ns = 0;
  std::int64_t bytes_sent = 0;
  bool fits() const { return overflow_bytes == 0; }
  friend auto operator<=>(const Score&, const Score&) = default;
};

// The bytes that must not pass the limit: the any-timing peak instead of the peak where the rules
// plan against that one (rule E1).
std::int64_t counted_bytes(const Problem& problem, const Peak& peak);

Score score_of(const Problem& problem, const Prediction& prediction);

struct Plan {
  Placement placement;
  Sequences sequences;
  Prediction prediction;
  Score score;
  std::string algorithm;      // the row that made it
  std::int64_t bound_ns = 0;  // no plan on this machine has a shorter step
  std::uint64_t seed = 0;
  std::int64_t steps = 0;  // of the search; 0: none ran
};

}  // namespace pardnn
