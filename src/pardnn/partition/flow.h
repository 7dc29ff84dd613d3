// Flow: the graph as clustering sees it, ops with mean times and the values that they pass on;
// groups that can be one node without closing a cycle are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/problem/problem.h"
#include "pardnn/partition/times.h"

namespace pardnn {

enum class NodeId : std::uint32_t {};   // in topological order, ties by least op
enum class ValueId : std::uint32_t {};  // a tensor, or the signal of an op's control edges

// A value that leaves the node that makes it.
struct Value {
  NodeId maker{};
  std::int64_t crossing_ns = 0;  // mean time of its transfer
};

class Flow {
 public:
  // A group is contracted when it is convex: no path leaves it and returns. Where finding that out
  // would visit too many ops it counts as not convex; nothing depends on it but quality.
  Flow(const Problem& problem, const Times& times);

  IdRange<NodeId> nodes() const { return time_ns_.ids(); }
  IdRange<ValueId> values() const { return values_.ids(); }
  std::int64_t time_ns(NodeId node) const { return time_ns_[node]; }
  std::span<const OpId> ops(NodeId node) const { return ops_[node]; }
  const Value& value(ValueId value) const { return values_[value]; }
  std::span<const ValueId> made(NodeId node) const { return made_[node]; }
  std::span<const ValueId> read(NodeId node) const { return read_[node]; }          // each once
  std::span<const NodeId> readers(ValueId value) const { return readers_[value]; }  // each once

 private:
  void add_values(const Problem& problem, const Times& times,
                  const Table<OpId, NodeId>& node_of_op);

  Table<NodeId, std::int64_t> time_ns_;
  Lists<NodeId, OpId> ops_;
  Table<ValueId, Value> values_;
  Lists<NodeId, ValueId> made_, read_;
  Lists<ValueId, NodeId> readers_;
};

}  // namespace pardnn
