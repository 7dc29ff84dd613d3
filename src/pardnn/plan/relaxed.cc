#include "pardnn/plan/relaxed.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace pardnn {
namespace {

using Sent = std::pair<OpId, std::optional<TensorId>>;  // nothing: the signal of a control edge

// What crosses an edge when its two ends are apart.
class Crossings {
 public:
  explicit Crossings(const Problem& problem) : problem_(problem) {
    for (DeviceId from : problem.devices()) {
      for (DeviceId to : problem.devices()) {
        if (from == to || !problem.has_link(from, to)) continue;
        const Link& link = problem.link(from, to);
        const bool is_known = std::ranges::any_of(pairs_, [&](const Pair& pair) {
          const Link& other = problem.link(pair.first, pair.second);
          return other.bytes_per_second == link.bytes_per_second &&
                 other.overhead_ns == link.overhead_ns && other.latency_ns == link.latency_ns;
        });
        if (!is_known) pairs_.emplace_back(from, to);
      }
    }
  }

  // All that `producer` sends to one reader goes over one link, hence one after another where
  // transfers wait for their channels; else at once. The least over all links.
  std::int64_t least_ns(std::span<const Sent> sent) const {
    std::optional<std::int64_t> least;
    for (const auto& [from, to] : pairs_) {
      std::int64_t busy_ns = 0;
      for (const auto& [producer, tensor] : sent) {
        const std::int64_t one = problem_.busy_ns(tensor ? problem_.bytes(*tensor) : 0, from, to);
        busy_ns = problem_.rules().contention ? busy_ns + one : std::max(busy_ns, one);
      }
      const std::int64_t ns = busy_ns + problem_.link(from, to).latency_ns;
      least = std::min(least.value_or(ns), ns);
    }
    return least.value_or(0);
  }

 private:
  using Pair = std::pair<DeviceId, DeviceId>;
  const Problem& problem_;
  std::vector<Pair> pairs_;  // links that cost the same, once
};

void collect_sent(const Graph& graph, OpId op, std::vector<Sent>& sent) {
  sent.clear();
  for (const Input& input : graph.inputs(op)) {
    if (input.is_variable()) continue;
    const OpId producer = graph.tensor(input.tensor()).producer;
    if (!graph.is_every(producer)) sent.emplace_back(producer, input.tensor());
  }
  for (const OpId producer : graph.controls(op)) sent.emplace_back(producer, std::nullopt);
  std::sort(sent.begin(), sent.end());
  sent.erase(std::unique(sent.begin(), sent.end()), sent.end());
}

Lists<OpId, Relaxed::Edge> turned(const Lists<OpId, Relaxed::Edge>& before) {
  const auto count = static_cast<std::uint32_t>(before.size());
  std::vector<std::uint32_t> first(count + 1, 0);
  for (const Relaxed::Edge& edge : before.values()) ++first[index(edge.op) + 1];
  for (std::uint32_t op = 0; op < count; ++op) first[op + 1] += first[op];
  std::vector<Relaxed::Edge> edges(before.values().size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const OpId op : IdRange<OpId>(count)) {
    for (const Relaxed::Edge& edge : before[op]) {
      edges[next[index(edge.op)]++] = {op, edge.crossing_ns};
    }
  }
  return {std::move(first), std::move(edges)};
}

}  // namespace

Relaxed relax(const Problem& problem) {
  const Graph& graph = problem.graph();
  const Crossings crossings(problem);
  Relaxed relaxed;
  relaxed.least_ns.resize(graph.ops().size());
  std::vector<Sent> sent;
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) {
      relaxed.before.close();
      continue;
    }
    std::optional<std::int64_t> least;
    for (const DeviceId device : problem.devices()) {
      if (!problem.is_allowed(*problem.unit(op), device)) continue;
      const std::int64_t ns = problem.duration_ns(op, device);
      least = std::min(least.value_or(ns), ns);
    }
    relaxed.least_ns[op] = *least;
    collect_sent(graph, op, sent);
    for (std::size_t begin = 0, end = 0; begin < sent.size(); begin = end) {
      const OpId producer = sent[begin].first;
      while (end < sent.size() && sent[end].first == producer) ++end;
      const std::span<const Sent> together(sent.data() + begin, end - begin);
      relaxed.before.add({producer, crossings.least_ns(together)});
    }
    relaxed.before.close();
  }
  relaxed.after = turned(relaxed.before);
  return relaxed;
}

}  // namespace pardnn
