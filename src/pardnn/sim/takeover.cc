// Rule M4b: an output takes over the buffer behind an input that nothing else needs any more.
#include <algorithm>

#include "pardnn/sim/lifetimes.h"

namespace pardnn {

// Whether an output takes a buffer over depends on uses of the buffer only, and those are all known
// here, so the outputs can be tried by id instead of by time. Two different ops never both may:
// the one that starts later still has to read the buffer when the earlier one starts.
void Lifetimes::take_over() {
  for (TensorId output : takers_) {
    const OpId op = graph_.tensor(output).producer;
    const std::uint32_t number = *graph_.tensor(output).takes_over;
    const auto buffer = behind(graph_.inputs(op)[number], schedule_.device[op]);
    if (!buffer || !may_pass(*buffer, op, number, output)) continue;
    uses_[*buffer].taken_by = output;
    uses_[own(output)].is_allocated = false;
  }
}

// A transfer that arrives at the op's start has finished by then. A copy is fetched where an alias
// made on it is; that the tensor is fetched where it was made does not keep the copy (rule M2).
bool Lifetimes::may_pass(BufferId buffer, OpId op, std::uint32_t input, TensorId output) const {
  const BufferUse& use = uses_[buffer];
  if (use.taken_by || use.is_fetched) return false;
  if (use.last_position != schedule_.position[op]) return false;
  if (use.last_arrival_ns > schedule_.start_ns[op]) return false;
  if (bytes(buffer) != problem_.buffer_bytes(output)) return false;
  const auto inputs = graph_.inputs(op);
  for (std::uint32_t other = 0; other < inputs.size(); ++other) {
    if (other != input && behind(inputs[other], schedule_.device[op]) == buffer) return false;
  }
  return true;
}

}  // namespace pardnn
