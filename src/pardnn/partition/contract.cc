// Which groups can become one node each without closing a cycle.
//
// A topological order of the nodes is kept while groups are contracted one after another. All that
// can lie on a path that leaves a group and returns lies between its first and last member in that
// order, so the search stays there; if it does not come back, the members move together: first the
// rest of the range, then the group, then what the group reaches (Pearce and Kelly 2006 keep an
// order the same way when an edge is added).
#include "pardnn/partition/contract.h"

#include <algorithm>
#include <optional>

#include "pardnn/partition/edges.h"

namespace pardnn {
namespace {

// Give up on a group that spans more nodes; a step's weights are read at its start and updated at
// its end, and such groups are hardly ever convex.
constexpr std::size_t kWidestRange = 20'000;

class Contraction {
 public:
  explicit Contraction(const Problem& problem)
      : problem_(problem), graph_(problem.graph()), node_(graph_.ops().size(), 0) {
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      node_[op] = static_cast<std::uint32_t>(ops_.size());
      place_.push_back(ops_.size());
      line_.push_back(node_[op]);
      ops_.push_back({op});
    }
    reached_.assign(ops_.size(), 0);
  }

  void contract(std::span<const OpId> members) {
    std::size_t first = line_.size(), last = 0;
    for (const OpId op : members) {
      first = std::min(first, place_[node_[op]]);
      last = std::max(last, place_[node_[op]]);
    }
    if (last - first > kWidestRange || returns(members, last)) return;
    regroup(members, first, last);
  }

  std::vector<std::vector<OpId>> take() {
    std::vector<std::vector<OpId>> nodes;
    for (const std::optional<std::uint32_t>& node : line_) {
      if (node.has_value()) nodes.push_back(std::move(ops_[*node]));
    }
    return nodes;
  }

 private:
  // Marks what the group reaches up to `last`; whether that leads back into the group.
  bool returns(std::span<const OpId> members, std::size_t last) {
    ++search_;
    std::vector<std::uint32_t> open;
    const auto follow = [&](OpId op) {
      for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
        const std::uint32_t node = node_[reader];
        if (place_[node] > last || reached_[node] == search_) return;
        reached_[node] = search_;
        open.push_back(node);
      });
    };
    for (const OpId op : members) reached_[node_[op]] = search_;
    for (const OpId op : members) follow(op);
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (const OpId op : ops_[node]) {
        bool back = false;
        for_each_reader(graph_, op, [&](OpId reader, std::optional<TensorId>) {
          back |= problem_.unit(reader) == problem_.unit(members.front());
        });
        if (back) return true;
        follow(op);
      }
    }
    return false;
  }

  void regroup(std::span<const OpId> members, std::size_t first, std::size_t last) {
    const std::uint32_t group = node_[members.front()];
    std::vector<std::uint32_t> before, after;
    for (std::size_t at = first; at <= last; ++at) {
      if (!line_[at].has_value()) continue;
      const std::uint32_t node = *line_[at];
      if (problem_.unit(ops_[node].front()) == problem_.unit(members.front())) continue;
      (reached_[node] == search_ ? after : before).push_back(node);
    }
    for (const OpId op : members) {
      if (node_[op] != group) ops_[node_[op]].clear();
      node_[op] = group;
    }
    ops_[group].assign(members.begin(), members.end());
    std::size_t at = first;
    const auto put = [&](std::uint32_t node) {
      line_[at] = node;
      place_[node] = at++;
    };
    for (const std::uint32_t node : before) put(node);
    put(group);
    for (const std::uint32_t node : after) put(node);
    while (at <= last) line_[at++].reset();
  }

  const Problem& problem_;
  const Graph& graph_;
  Table<OpId, std::uint32_t> node_;
  std::vector<std::vector<OpId>> ops_;              // of each node
  std::vector<std::optional<std::uint32_t>> line_;  // nodes in topological order, with gaps
  std::vector<std::size_t> place_;                  // of each node in it
  std::vector<std::uint32_t> reached_;              // the last search that met the node
  std::uint32_t search_ = 0;
};

}  // namespace

std::vector<std::vector<OpId>> contract_convex_groups(const Problem& problem) {
  Contraction contraction(problem);
  for (const UnitId unit : problem.units()) {
    if (problem.ops(unit).size() > 1) contraction.contract(problem.ops(unit));
  }
  return contraction.take();
}

}  // namespace pardnn
