// The simulator: a plan run on paper, to the nanosecond and the byte (docs/model.md).
//
// Two passes: `schedule` finds when everything happens (rules D, T), `lifetimes` which buffers
// exist when (rules M, V, X). Both are near-linear; a Simulator keeps its arrays between runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// When everything happens.
struct Timeline {
  Table<OpId, std::int64_t> start_ns, finish_ns;  // 0 for `every` ops
  std::vector<Transfer> transfers;                // in the order of Prediction
  std::int64_t step_ns = 0;
  std::int64_t bytes_sent = 0;
};

// Bytes on one device during [begin, end).
struct Buffer {
  enum class What : std::uint8_t { kOutput, kCopy, kEvery, kVariable, kWorkspace, kReserve };
  What what = What::kOutput;
  DeviceId device{};
  std::optional<TensorId> tensor = {};  // kOutput, kCopy, kEvery: the first tensor that lay in it
  std::optional<VariableId> variable = {};  // kVariable
  std::optional<OpId> op = {};              // kWorkspace
  std::int64_t bytes = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
};

class Simulator {
 public:
  explicit Simulator(const Problem& problem);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  // Under Dispatch::kSequence `sequences` is read; nothing is answered when sequences and edges
  // form a cycle (rule D4) or a tensor must go where no link leads (rule T9). Under Dispatch::kFifo
  // `sequences` is written: the order that came out. The reference is good until the next call.
  const Timeline* schedule(const Placement& placement, Sequences& sequences);

  // Buffers of the last schedule, by device, then begin, then in the order of rule M.
  const std::vector<Buffer>& lifetimes();

  // The last schedule. The reference is good until the next call.
  const Timeline& timeline();

  // Peaks of the last schedule; the any-timing peak only when asked for (it is 0 otherwise).
  Table<DeviceId, Peak> peaks(bool any_timing);

  // schedule, then score without the any-timing peak unless the rules plan against it, and without
  // any peak where none could pass a limit. Nothing where `schedule` answers nothing.
  std::optional<Score> score(const Placement& placement, Sequences& sequences);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// All of it for one plan. Nothing where `schedule` answers nothing.
std::optional<Prediction> predict(const Problem& problem, const Placement& placement,
                                  Sequences& sequences);

}  // namespace pardnn
