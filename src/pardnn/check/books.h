// Books of one device: which buffer lies behind every tensor that is there, and until when.
//
// The same books serve real times and any timing: both are positions on a line, and only the
// questions asked of them differ (see Clock).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "pardnn/plan/plan.h"

namespace pardnn::checking {

// Bytes in use during [begin, end).
struct Held {
  std::int64_t bytes = 0, begin = 0, end = 0;
};

// When things happen on one device, in whatever unit the books are kept.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t start(OpId local_op) const = 0;
  virtual std::int64_t finish(OpId local_op) const = 0;
  virtual std::int64_t copy_begin(TensorId copied_here) const = 0;
  // Until when the buffer of a tensor that is produced here must stay for being sent.
  virtual std::int64_t sent_until(TensorId sent_from_here, DeviceId to) const = 0;
  virtual std::int64_t end_of_step() const = 0;
};

class Books {
 public:
  Books(const Problem& problem, const Placement& placement, DeviceId device, const Clock& clock);

  // Takes the ops of the device in the order in which they start; what they read from elsewhere is
  // booked on the way.
  void run(const std::vector<OpId>& sequence);

  // Bytes that are there all step: reserve, variables, `every` values read here.
  std::int64_t resident_bytes() const { return resident_bytes_; }
  // Outputs, copies and workspace.
  std::vector<Held> held() const;

 private:
  struct Buffer {
    Held held;
    bool may_be_taken = true;       // not of a variable or an `every` op
    std::vector<TensorId> members;  // tensors that lie or lay in it
  };

  void book(OpId op);
  std::optional<std::size_t> buffer_behind(const Input& input);
  std::optional<std::size_t> take_over(OpId op, TensorId output,
                                       const std::vector<std::size_t>& taken);
  std::size_t own_buffer(std::int64_t bytes, std::int64_t begin);
  void join(std::size_t buffer, TensorId tensor);
  bool is_free_for(std::size_t buffer, OpId op) const;
  bool is_here(OpId op) const { return placement_.ops[op] == device_; }

  const Problem& problem_;
  const Graph& graph_;
  const Placement& placement_;
  const DeviceId device_;
  const Clock& clock_;
  std::int64_t resident_bytes_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<Held> workspace_;
  std::map<TensorId, std::size_t> buffer_of_;          // tensors that are here
  std::map<VariableId, std::size_t> variable_buffer_;  // buffers of 0 more bytes
};

}  // namespace pardnn::checking
