// Flow: the graph as clustering sees it.
#include "pardnn/partition/flow.h"

#include <algorithm>
#include <optional>

#include "pardnn/partition/contract.h"
#include "pardnn/partition/edges.h"

namespace pardnn {

Flow::Flow(const Problem& problem, const Times& times) {
  Table<OpId, NodeId> node_of_op(problem.graph().ops().size());
  for (const std::vector<OpId>& ops : contract_convex_groups(problem)) {
    std::int64_t time_ns = 0;
    for (const OpId op : ops) {
      time_ns = saturating_add(time_ns, problem.mean_duration_ns(op));
      ops_.add(op);
      node_of_op[op] = NodeId{static_cast<std::uint32_t>(time_ns_.size())};
    }
    ops_.close();
    time_ns_.push(time_ns);
  }
  add_values(problem, times, node_of_op);
}

void Flow::add_values(const Problem& problem, const Times& times,
                      const Table<OpId, NodeId>& node_of_op) {
  const Graph& graph = problem.graph();
  std::vector<NodeId> readers;
  std::vector<std::uint32_t> read_count(time_ns_.size(), 0);
  const auto add = [&](NodeId maker, std::optional<TensorId> tensor, std::span<const OpId> ops) {
    readers.clear();
    for (const OpId op : ops) {
      if (node_of_op[op] != maker) readers.push_back(node_of_op[op]);
    }
    if (readers.empty()) return;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const NodeId reader : readers) {
      readers_.add(reader);
      ++read_count[index(reader)];
    }
    readers_.close();
    made_.add(values_.push({maker, times.mean_crossing_ns(tensor)}));
  };
  for (const NodeId node : nodes()) {
    for (const OpId op : ops_[node]) {
      for (const TensorId tensor : graph.outputs(op)) add(node, tensor, graph.readers(tensor));
      add(node, std::nullopt, graph.control_readers(op));
    }
    made_.close();
  }
  // Turned round: what each node reads, values ascending.
  std::vector<std::size_t> next(time_ns_.size(), 0);
  std::size_t all = 0;
  for (const NodeId node : nodes()) {
    next[index(node)] = all;
    all += read_count[index(node)];
  }
  std::vector<ValueId> read(all);
  for (const ValueId value : values()) {
    for (const NodeId reader : readers_[value]) read[next[index(reader)]++] = value;
  }
  std::size_t at = 0;
  for (const NodeId node : nodes()) {
    for (std::uint32_t n = 0; n < read_count[index(node)]; ++n) read_.add(read[at++]);
    read_.close();
  }
}

}  // namespace pardnn
