#include "pardnn/problem/reachability.h"

#include <optional>

namespace pardnn {
namespace {

template <class Visit>
void for_each_predecessor(const Graph& graph, OpId op, Visit visit) {
  for (const Input& input : graph.inputs(op)) {
    if (!input.is_variable()) visit(graph.tensor(input.tensor()).producer);
  }
  for (OpId before : graph.controls(op)) visit(before);
}

template <class Visit>
void for_each_successor(const Graph& graph, OpId op, Visit visit) {
  for (TensorId tensor : graph.outputs(op)) {
    for (OpId reader : graph.readers(tensor)) visit(reader);
  }
  for (OpId after : graph.control_readers(op)) visit(after);
}

}  // namespace

Reachability::Reachability(const Graph& graph)
    : graph_(graph),
      depth_(graph.ops().size()),
      first_(graph.ops().size()),
      end_(graph.ops().size()),
      visited_in_(graph.ops().size()) {
  const std::size_t count = graph.ops().size();
  Table<OpId, std::optional<OpId>> parent(count);
  for (OpId op : graph.ops()) {
    for_each_predecessor(graph, op, [&](OpId before) {
      if (depth_[before] < depth_[op]) return;
      depth_[op] = depth_[before] + 1;
      parent[op] = before;
    });
  }
  Table<OpId, std::uint32_t> size(count, 1);
  for (std::size_t i = count; i-- > 0;) {
    const OpId op = graph.ops()[i];
    if (parent[op]) size[*parent[op]] += size[op];
  }
  // A parent has the lower id, so its place is known before those of its children.
  Table<OpId, std::uint32_t> next_place(count);
  std::uint32_t next_root = 0;
  for (OpId op : graph.ops()) {
    std::uint32_t& place = parent[op] ? next_place[*parent[op]] : next_root;
    first_[op] = place;
    end_[op] = place + size[op];
    place += size[op];
    next_place[op] = first_[op] + 1;
  }
}

bool Reachability::path(OpId from, OpId to) {
  if (depth_[from] >= depth_[to]) return false;
  if (in_subtree(from, to)) return true;
  ++question_;
  open_.assign(1, from);
  while (!open_.empty()) {
    const OpId op = open_.back();
    open_.pop_back();
    bool found = false;
    for_each_successor(graph_, op, [&](OpId after) {
      if (visited_in_[after] == question_ || after > to || depth_[after] > depth_[to]) return;
      visited_in_[after] = question_;
      found = found || in_subtree(after, to);
      open_.push_back(after);
    });
    if (found) return true;
  }
  return false;
}

}  // namespace pardnn
