// CutGraph: what a graph cut sees of a step.
#include "pardnn/partition/cut_graph.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace pardnn {
namespace {

class WireCollector {
 public:
  explicit WireCollector(CutGraph& graph) : graph_(graph), wires_of_(graph.lumps().size(), 0) {}

  // Of the lumps given, in any order and some perhaps twice.
  void add(std::vector<LumpId>& members, std::int64_t crossing_ns) {
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.size() < 2) return;
    if (const std::optional<WireId> same = find_or_note(members)) {
      graph_.crossing_ns[*same] = saturating_add(graph_.crossing_ns[*same], crossing_ns);
      return;
    }
    graph_.crossing_ns.push(crossing_ns);
    for (const LumpId lump : members) {
      graph_.members.add(lump);
      ++wires_of_[lump];
    }
    graph_.members.close();
  }

  // Turns the members round: the wires of each lump.
  void finish() {
    std::vector<std::uint32_t> first(1, 0);
    for (const std::uint32_t count : wires_of_) first.push_back(first.back() + count);
    std::vector<WireId> wires(first.back());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (const WireId wire : graph_.crossing_ns.ids()) {
      for (const LumpId lump : graph_.members[wire]) wires[next[index(lump)]++] = wire;
    }
    graph_.wires = Lists<LumpId, WireId>(std::move(first), std::move(wires));
  }

 private:
  // The wire with these members, or nothing after noting that the next one has them. Two sets of
  // one hash stay apart: the second is not noted.
  std::optional<WireId> find_or_note(const std::vector<LumpId>& members) {
    std::uint64_t hash = members.size();
    for (const LumpId lump : members) hash = (hash ^ index(lump)) * 0x9E3779B97F4A7C15u;
    const WireId next{static_cast<std::uint32_t>(graph_.crossing_ns.size())};
    const auto [noted, is_new] = first_of_.try_emplace(hash, next);
    if (is_new) return std::nullopt;
    const auto found = graph_.members[noted->second];
    if (!std::equal(found.begin(), found.end(), members.begin(), members.end())) {
      return std::nullopt;
    }
    return noted->second;
  }

  CutGraph& graph_;
  Table<LumpId, std::uint32_t> wires_of_;
  std::unordered_map<std::uint64_t, WireId> first_of_;
};

}  // namespace

CutGraph graph_of_units(const Problem& problem, const Times& times) {
  const Graph& graph = problem.graph();
  CutGraph cut;
  cut.allowed = Table<LumpId, DeviceSet>(problem.units().size());
  for (const UnitId unit : problem.units()) {
    cut.allowed[LumpId{index(unit)}] = problem.allowed(unit);
  }
  WireCollector collector(cut);
  std::vector<LumpId> members;
  const auto add = [&](OpId op, std::optional<TensorId> tensor, std::span<const OpId> readers) {
    members.assign(1, LumpId{index(*problem.unit(op))});
    for (const OpId reader : readers) members.push_back(LumpId{index(*problem.unit(reader))});
    collector.add(members, times.mean_crossing_ns(tensor));
  };
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for (const TensorId tensor : graph.outputs(op)) add(op, tensor, graph.readers(tensor));
    add(op, std::nullopt, graph.control_readers(op));
  }
  collector.finish();
  return cut;
}

CutGraph contract(const CutGraph& graph, const Table<LumpId, LumpId>& cluster, std::size_t count) {
  CutGraph coarse;
  coarse.weight_count = graph.weight_count;
  coarse.weights.assign(count * graph.weight_count, 0);
  coarse.allowed = Table<LumpId, DeviceSet>(count);
  for (const LumpId lump : graph.lumps()) {
    coarse.allowed[cluster[lump]] = graph.allowed[lump];
    for (std::size_t n = 0; n < graph.weight_count; ++n) {
      coarse.weights[index(cluster[lump]) * graph.weight_count + n] += graph.weights_of(lump)[n];
    }
  }
  WireCollector collector(coarse);
  std::vector<LumpId> members;
  for (const WireId wire : graph.crossing_ns.ids()) {
    members.clear();
    for (const LumpId lump : graph.members[wire]) members.push_back(cluster[lump]);
    collector.add(members, graph.crossing_ns[wire]);
  }
  collector.finish();
  return coarse;
}

}  // namespace pardnn
