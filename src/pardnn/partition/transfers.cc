// What a move of one unit does to the transfers of a placement.
#include "pardnn/partition/transfers.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace pardnn {
namespace {

// What is sent: a tensor, or the signal of an op.
struct Value {
  OpId producer;
  std::optional<TensorId> tensor;
  auto operator<=>(const Value&) const = default;
};

struct UnitValues {
  std::vector<Value> read, made;  // from outside the unit, each once; by the unit
};

UnitValues values_of(const Problem& problem, UnitId unit) {
  const Graph& graph = problem.graph();
  std::vector<Value> made, read;
  for (const OpId op : problem.ops(unit)) {
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      const OpId producer = graph.tensor(input.tensor()).producer;
      if (graph.is_every(producer) || *problem.unit(producer) == unit) continue;
      read.push_back({producer, input.tensor()});
    }
    for (const OpId producer : graph.controls(op)) {
      if (*problem.unit(producer) != unit) read.push_back({producer, std::nullopt});
    }
    for (const TensorId tensor : graph.outputs(op)) made.push_back({op, tensor});
    if (!graph.control_readers(op).empty()) made.push_back({op, std::nullopt});
  }
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return {std::move(read), std::move(made)};
}

}  // namespace

TransferChange transfer_change(const Problem& problem, const Times& times,
                               const UnitPlacement& placement, UnitId unit, DeviceId to) {
  const Graph& graph = problem.graph();
  const DeviceId from = placement[unit];
  const UnitValues values = values_of(problem, unit);
  const auto others_read = [&](const Value& value, DeviceId device) {
    const std::span<const OpId> readers = value.tensor.has_value()
                                              ? graph.readers(*value.tensor)
                                              : graph.control_readers(value.producer);
    return std::any_of(readers.begin(), readers.end(), [&](OpId reader) {
      const UnitId reading = *problem.unit(reader);
      return reading != unit && placement[reading] == device;
    });
  };
  TransferChange change;
  if (from == to) return change;
  for (const Value& value : values.read) {
    const DeviceId source = placement[*problem.unit(value.producer)];
    const std::int64_t ns = times.mean_crossing_ns(value.tensor);
    if (source != from && !others_read(value, from)) change.saved_ns += ns;
    if (source != to && !others_read(value, to)) change.added_ns += ns;
  }
  for (const Value& value : values.made) {
    const std::int64_t ns = times.mean_crossing_ns(value.tensor);
    if (others_read(value, from)) change.added_ns += ns;
    if (others_read(value, to)) change.saved_ns += ns;
  }
  return change;
}

}  // namespace pardnn
