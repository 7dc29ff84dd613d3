// Reorder: makes room on devices at a moment by order alone, without moving any op elsewhere.
#include "pardnn/partition/reorder.h"

#include <algorithm>
#include <tuple>

#include "pardnn/partition/edges.h"
#include "pardnn/partition/orders.h"

namespace pardnn {
namespace {

struct Change {
  bool waits;  // for its first reader; else it goes ahead of the moment
  std::int64_t gained_bytes;
  OpId op;

  bool operator<(const Change& other) const {
    return std::tuple(!waits, -gained_bytes, op) <
           std::tuple(!other.waits, -other.gained_bytes, other.op);
  }
};

class Reorder {
 public:
  Reorder(const Problem& problem, const Times& times, const UnitPlacement& placement,
          const Timeline& timeline)
      : problem_(problem),
        graph_(problem.graph()),
        times_(times),
        placement_(placement),
        timeline_(timeline),
        order_(order_by(graph_, timeline.start_ns)),
        position_(graph_.ops().size(), 0),
        later_readers_(graph_.tensors().size(), 0),
        kept_(graph_.tensors().size(), 0),
        goes_before_(graph_.ops().size()) {
    for (std::size_t n = 0; n < order_.size(); ++n) position_[order_[n]] = n;
    for (const TensorId tensor : graph_.tensors()) {
      const std::optional<TensorId> origin = graph_.origin(tensor).tensor;
      if (origin.has_value() && graph_.tensor(tensor).fetched) kept_[*origin] = 1;
    }
  }

  // Whether anything was gained.
  bool relieve(const Shortage& shortage, Table<OpId, char>& tried) {
    look_at(shortage);
    std::vector<Change> changes;
    for (const OpId op : order_) {
      if (!is_here(op) || tried[op]) continue;
      const bool waits = timeline_.finish_ns[op] <= moment_ns_;
      if (!waits && timeline_.start_ns[op] <= moment_ns_) continue;
      if (waits ? !may_wait(op) : !may_go_ahead(op)) continue;
      const std::int64_t gained = waits ? gain_of_waiting(op) : gain_ahead(op);
      if (gained > 0) changes.push_back({waits, gained, op});
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t gained = 0;
    for (const Change& change : changes) {
      if (gained >= shortage.bytes) break;
      if (meets_a_change(change.op)) continue;
      goes_before_[change.op] = change.waits ? first_reader(change.op) : position_[*running_];
      tried[change.op] = 1;
      gained += change.gained_bytes;
    }
    return gained > 0;
  }

  std::vector<OpId> order() {
    std::vector<std::tuple<std::size_t, bool, OpId>> keys;
    for (const OpId op : order_) {
      const std::optional<std::size_t> before = goes_before_[op];
      keys.emplace_back(before.value_or(position_[op]), !before.has_value(), op);
    }
    std::sort(keys.begin(), keys.end());
    for (std::size_t n = 0; n < keys.size(); ++n) order_[n] = std::get<OpId>(keys[n]);
    return std::move(order_);
  }

 private:
  bool is_here(OpId op) const { return placement_[*problem_.unit(op)] == device_; }

  void look_at(const Shortage& shortage) {
    device_ = shortage.device;
    moment_ns_ = shortage.moment_ns;
    running_.reset();
    std::fill(later_readers_.begin(), later_readers_.end(), 0);
    for (const OpId op : order_) {
      if (!is_here(op)) continue;
      if (timeline_.start_ns[op] <= moment_ns_) running_ = op;
      if (timeline_.finish_ns[op] <= moment_ns_) continue;
      for (const TensorId value : values_read(op)) ++later_readers_[value];
    }
  }

  // Buffers behind what the op reads, each once.
  std::vector<TensorId> values_read(OpId op) const {
    std::vector<TensorId> values;
    for (const Input& input : graph_.inputs(op)) {
      if (input.is_variable()) continue;
      const std::optional<TensorId> origin = graph_.origin(input.tensor()).tensor;
      if (!origin.has_value() || graph_.is_every(graph_.tensor(*origin).producer)) continue;
      values.push_back(*origin);
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  // Nobody waits for it before the moment is over, and its results are its own.
  bool may_wait(OpId op) const {
    for (const TensorId tensor : graph_.outputs(op)) {
      const Tensor& output = graph_.tensor(tensor);
      if (output.alias_of.has_value() || output.fetched) return false;
    }
    bool read = false, early = false;
    for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
      read = true;
      early |= timeline_.start_ns[reader] <= moment_ns_;
    });
    return read && !early;
  }

  bool may_go_ahead(OpId op) const {
    if (!running_.has_value()) return false;
    bool there = true;
    for_each_producer(graph_, op, [&](OpId producer, std::optional<TensorId> tensor) {
      const std::int64_t crossing_ns = is_here(producer) ? 0 : times_.mean_crossing_ns(tensor);
      there &= saturating_add(timeline_.finish_ns[producer], crossing_ns) <=
               timeline_.start_ns[*running_];
    });
    return there;
  }

  std::int64_t made_bytes(OpId op) const {
    std::int64_t bytes = 0;
    for (const TensorId tensor : graph_.outputs(op)) {
      if (graph_.tensor(tensor).alias_of.has_value()) continue;
      if (graph_.readers(tensor).empty() && !kept_[tensor]) continue;
      bytes += problem_.buffer_bytes(tensor);
    }
    return bytes;
  }

  // What it reads and nobody else does later stays until it runs.
  std::int64_t gain_of_waiting(OpId op) const {
    std::int64_t gained = made_bytes(op);
    for (const TensorId value : values_read(op)) {
      if (later_readers_[value] == 0 && !kept_[value]) gained -= problem_.buffer_bytes(value);
    }
    return gained;
  }

  std::int64_t gain_ahead(OpId op) const {
    std::int64_t gained = -made_bytes(op);
    for (const TensorId value : values_read(op)) {
      if (later_readers_[value] == 1 && !kept_[value]) gained += problem_.buffer_bytes(value);
    }
    return gained;
  }

  bool meets_a_change(OpId op) const {
    bool meets = false;
    const auto look = [&](OpId other, std::optional<TensorId>) {
      meets |= goes_before_[other].has_value();
    };
    for_each_producer(graph_, op, look);
    for_each_reader(graph_, op, look);
    return meets;
  }

  std::size_t first_reader(OpId op) const {
    std::size_t first = order_.size();
    for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
      first = std::min(first, position_[reader]);
    });
    return first;
  }

  const Problem& problem_;
  const Graph& graph_;
  const Times& times_;
  const UnitPlacement& placement_;
  const Timeline& timeline_;
  std::vector<OpId> order_;  // by start
  Table<OpId, std::size_t> position_;
  DeviceId device_{};
  std::int64_t moment_ns_ = 0;
  std::optional<OpId> running_;                   // on the device at the moment, or last before it
  Table<TensorId, std::uint32_t> later_readers_;  // on the device, not finished at the moment
  Table<TensorId, char> kept_;                    // fetched
  Table<OpId, std::optional<std::size_t>> goes_before_;  // the position of another op
};

}  // namespace

std::optional<std::vector<OpId>> make_room_by_order(const Problem& problem, const Times& times,
                                                    const UnitPlacement& placement,
                                                    const Timeline& timeline,
                                                    const std::vector<Shortage>& shortages,
                                                    Table<OpId, char>& tried) {
  Reorder reorder(problem, times, placement, timeline);
  bool gained = false;
  for (const Shortage& shortage : shortages) gained |= reorder.relieve(shortage, tried);
  if (!gained) return std::nullopt;
  return reorder.order();
}

}  // namespace pardnn
