#include "pardnn/check/books.h"

#include <algorithm>
#include <set>

namespace pardnn::checking {

Books::Books(const Problem& problem, const Placement& placement, DeviceId device,
             const Clock& clock)
    : problem_(problem),
      graph_(problem.graph()),
      placement_(placement),
      device_(device),
      clock_(clock),
      resident_bytes_(problem.reserve_bytes(device)) {
  for (const VariableId variable : graph_.variables()) {
    if (placement.variables[variable] == device) {
      resident_bytes_ += problem.buffer_bytes(variable);
    }
  }
}

void Books::run(const std::vector<OpId>& sequence) {
  for (const OpId op : sequence) book(op);
}

std::vector<Held> Books::held() const {
  std::vector<Held> held = workspace_;
  for (const Buffer& buffer : buffers_) {
    if (buffer.held.bytes > 0) held.push_back(buffer.held);
  }
  return held;
}

std::size_t Books::own_buffer(std::int64_t bytes, std::int64_t begin) {
  buffers_.push_back({{bytes, begin, begin}, true, {}});
  return buffers_.size() - 1;
}

// From now on `tensor` lies in `buffer`: it stays for all local readers, for every transfer of a
// tensor made here, and to the end when a tensor made here is fetched (rules M1, M2).
void Books::join(std::size_t at, TensorId tensor) {
  Buffer& buffer = buffers_[at];
  buffer_of_[tensor] = at;
  buffer.members.push_back(tensor);
  const OpId producer = graph_.tensor(tensor).producer;
  const auto stay = [&](std::int64_t until) { buffer.held.end = std::max(buffer.held.end, until); };
  for (const OpId reader : graph_.readers(tensor)) {
    if (is_here(reader)) stay(clock_.finish(reader));
  }
  if (!is_here(producer)) return;
  stay(clock_.finish(producer));
  for (const OpId reader : graph_.readers(tensor)) {
    if (!is_here(reader)) stay(clock_.sent_until(tensor, *placement_.ops[reader]));
  }
  if (graph_.tensor(tensor).fetched) stay(clock_.end_of_step());
}

// The buffer of what an op of this device reads, booked when it is the first to read it.
std::optional<std::size_t> Books::buffer_behind(const Input& input) {
  if (input.is_variable()) {
    const auto [at, is_new] = variable_buffer_.emplace(input.variable(), buffers_.size());
    if (is_new) buffers_[own_buffer(0, 0)].may_be_taken = false;
    return at->second;
  }
  const TensorId tensor = input.tensor();
  const auto known = buffer_of_.find(tensor);
  if (known != buffer_of_.end()) return known->second;
  if (graph_.is_every(graph_.tensor(tensor).producer)) {
    // The value behind it is held all step; several aliases of it hold it once (rule X1).
    const TensorId value = *graph_.origin(tensor).tensor;
    const auto held = buffer_of_.find(value);
    std::size_t at;
    if (held == buffer_of_.end()) {
      resident_bytes_ += problem_.buffer_bytes(value);
      at = own_buffer(0, 0);
      buffers_[at].may_be_taken = false;
      buffer_of_[value] = at;
    } else {
      at = held->second;
    }
    buffer_of_[tensor] = at;
    return at;
  }
  const std::size_t copy = own_buffer(problem_.buffer_bytes(tensor), clock_.copy_begin(tensor));
  join(copy, tensor);
  return copy;
}

// Whether nothing but `op` still needs the buffer when `op` starts (rule M4b).
bool Books::is_free_for(std::size_t at, OpId op) const {
  const std::int64_t now = clock_.start(op);
  for (const TensorId member : buffers_[at].members) {
    for (const OpId reader : graph_.readers(member)) {
      if (reader != op && is_here(reader) && clock_.finish(reader) > now) return false;
    }
    if (!is_here(graph_.tensor(member).producer)) continue;
    if (graph_.tensor(member).fetched) return false;
    for (const OpId reader : graph_.readers(member)) {
      if (is_here(reader)) continue;
      if (clock_.sent_until(member, *placement_.ops[reader]) > now) return false;
    }
  }
  return true;
}

std::optional<std::size_t> Books::take_over(OpId op, TensorId output,
                                            const std::vector<std::size_t>& taken) {
  const auto wanted = graph_.tensor(output).takes_over;
  if (!wanted) return std::nullopt;
  const auto inputs = graph_.inputs(op);
  const auto at = buffer_behind(inputs[*wanted]);
  const Buffer& buffer = buffers_[*at];
  if (!buffer.may_be_taken || std::ranges::count(taken, *at) > 0) return std::nullopt;
  if (buffer.held.bytes != problem_.buffer_bytes(output)) return std::nullopt;
  std::size_t ways = 0;
  for (const Input& input : inputs) ways += buffer_behind(input) == at;
  if (ways != 1 || !is_free_for(*at, op)) return std::nullopt;
  return at;
}

void Books::book(OpId op) {
  for (const Input& input : graph_.inputs(op)) buffer_behind(input);
  const std::int64_t start = clock_.start(op);
  if (problem_.workspace_bytes(op) > 0) {
    workspace_.push_back({problem_.workspace_bytes(op), start, clock_.finish(op)});
  }
  // Aliases first: one that the op makes itself and that is needed later keeps a buffer from being
  // taken over, whichever of the two outputs is written first.
  for (const TensorId output : graph_.outputs(op)) {
    if (const auto alias = graph_.tensor(output).alias_of) {
      join(*buffer_behind(graph_.inputs(op)[*alias]), output);
    }
  }
  std::vector<std::size_t> taken;
  for (const TensorId output : graph_.outputs(op)) {
    if (graph_.tensor(output).alias_of) continue;
    if (const auto over = take_over(op, output, taken)) {
      taken.push_back(*over);
      join(*over, output);
    } else {
      join(own_buffer(problem_.buffer_bytes(output), start), output);
    }
  }
}

}  // namespace pardnn::checking
