#include "pardnn/plan/memory_bound.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "pardnn/plan/footprint.h"

namespace pardnn {
namespace {

class Moments {
 public:
  explicit Moments(const Problem& problem)
      : problem_(problem),
        graph_(problem.graph()),
        behind_(least_buffer_bytes(problem)),
        is_before_(graph_.ops().size()),
        is_after_(graph_.ops().size()),
        counted_(graph_.tensors().size()) {
    for (const TensorId tensor : graph_.tensors()) {
      const auto origin = graph_.origin(tensor).tensor;
      // Nothing is held for a tensor that nobody waits for.
      const bool is_kept = graph_.tensor(tensor).fetched || !graph_.readers(tensor).empty();
      if (origin && is_kept && !graph_.is_every(maker(*origin))) names_.push_back(tensor);
    }
  }

  // What is held all step long.
  std::int64_t resident_bytes() const {
    std::int64_t bytes = 0;
    for (const DeviceId device : problem_.devices()) bytes += problem_.reserve_bytes(device);
    for (const UnitId unit : problem_.units()) bytes += variable_bytes(problem_, unit);
    Table<TensorId, bool> is_held(graph_.tensors().size(), false);
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      for (const Input& input : graph_.inputs(op)) {
        if (input.is_variable()) continue;
        const auto origin = graph_.origin(input.tensor()).tensor;
        if (!origin || !graph_.is_every(maker(*origin)) || is_held[*origin]) continue;
        is_held[*origin] = true;
        bytes += problem_.buffer_bytes(*origin);
      }
    }
    return bytes;
  }

  // Ops to look at.
  std::vector<OpId> sample() const {
    const std::size_t ops = graph_.ops().size();
    std::size_t edges = ops + 1;
    for (const TensorId tensor : graph_.tensors()) edges += graph_.readers(tensor).size();
    const std::size_t stretch = ops / (kLooks / edges + 1) + 1;
    const Table<OpId, std::int64_t> held = held_in_order_of_ids();
    std::vector<OpId> sample;
    for (std::size_t begin = 0; begin < ops; begin += stretch) {
      std::optional<OpId> best;
      for (std::size_t n = begin; n < std::min(ops, begin + stretch); ++n) {
        const OpId op{static_cast<std::uint32_t>(n)};
        if (!graph_.is_every(op) && (!best || held[op] > held[*best])) best = op;
      }
      if (best) sample.push_back(*best);
    }
    return sample;
  }

  // Beside what is held all step long.
  std::int64_t held_bytes(OpId op) {
    mark(op);
    std::int64_t bytes = made_bytes(problem_, op);
    for (const TensorId name : names_) {
      const TensorId origin = *graph_.origin(name).tensor;
      if (!is_before_[maker(origin)]) continue;
      const bool is_kept = graph_.tensor(name).fetched ||
                           std::ranges::any_of(graph_.readers(name), [&](OpId reader) {
                             return reader == op || is_after_[reader];
                           });
      if (!is_kept) continue;
      if (counted_[origin] == 0) touched_.push_back(origin);
      counted_[origin] = std::max(counted_[origin], behind_[name]);
    }
    for (const TensorId origin : touched_) bytes += std::exchange(counted_[origin], 0);
    touched_.clear();
    return bytes;
  }

 private:
  OpId maker(TensorId tensor) const { return graph_.tensor(tensor).producer; }

  template <class Visit>
  void for_each_before(OpId op, Visit visit) const {
    for (const Input& input : graph_.inputs(op)) {
      if (!input.is_variable()) visit(maker(input.tensor()));
    }
    for (const OpId before : graph_.controls(op)) visit(before);
  }

  void mark(OpId op) {
    is_before_.assign(graph_.ops().size(), false);
    is_after_.assign(graph_.ops().size(), false);
    for_each_before(op, [&](OpId before) { is_before_[before] = true; });
    for (std::uint32_t n = index(op); n-- > 0;) {
      if (!is_before_[OpId{n}]) continue;
      for_each_before(OpId{n}, [&](OpId before) { is_before_[before] = true; });
    }
    const auto ops = static_cast<std::uint32_t>(graph_.ops().size());
    for (const OpId later : IdRange<OpId>(pardnn::next(op), OpId{ops})) {
      bool is_after = false;
      for_each_before(later, [&](OpId before) { is_after |= before == op || is_after_[before]; });
      is_after_[later] = is_after;
    }
  }

  // While each op runs, if ops ran in the order of their ids on one device.
  Table<OpId, std::int64_t> held_in_order_of_ids() const {
    Table<OpId, std::int64_t> change(graph_.ops().size() + 1, 0);
    for (const TensorId name : names_) {
      const TensorId origin = *graph_.origin(name).tensor;
      OpId last = maker(name);
      if (!graph_.readers(name).empty()) last = graph_.readers(name).back();
      change[maker(origin)] += behind_[name];
      change[pardnn::next(last)] -= behind_[name];
    }
    std::int64_t bytes = 0;
    for (std::int64_t& row : change) row = bytes += row;
    return change;
  }

  const Problem& problem_;
  const Graph& graph_;
  Table<TensorId, std::int64_t> behind_;
  std::vector<TensorId> names_;  // tensors that lie in buffers of ordinary ops and are waited for
  Table<OpId, char> is_before_, is_after_;  // of the op that is looked at
  Table<TensorId, std::int64_t> counted_;   // what counts for each buffer
  std::vector<TensorId> touched_;
};

}  // namespace

MemoryBound memory_bound(const Problem& problem) {
  Moments moments(problem);
  const std::int64_t resident = moments.resident_bytes();
  MemoryBound bound{resident, std::nullopt};
  for (const OpId op : moments.sample()) {
    const std::int64_t bytes = resident + moments.held_bytes(op);
    if (bytes > bound.bytes) bound = {bytes, op};
  }
  return bound;
}

}  // namespace pardnn
