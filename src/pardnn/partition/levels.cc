// Levels of a flow.
#include "pardnn/partition/levels.h"

#include <algorithm>

namespace pardnn {

Levels levels_of(const Flow& flow, const ClusterOfNode& clusters) {
  Levels levels{.top = Table<NodeId, std::int64_t>(flow.nodes().size(), 0),
                .bottom = Table<NodeId, std::int64_t>(flow.nodes().size(), 0)};
  const auto crossing = [&](const Value& value, NodeId reader) {
    const bool inside =
        clusters[value.maker].has_value() && clusters[value.maker] == clusters[reader];
    return inside ? 0 : value.crossing_ns;
  };
  for (const NodeId node : flow.nodes()) {
    std::int64_t& top = levels.top[node];
    for (const ValueId id : flow.read(node)) {
      const Value& value = flow.value(id);
      const std::int64_t made = saturating_add(levels.top[value.maker], flow.time_ns(value.maker));
      top = std::max(top, saturating_add(made, crossing(value, node)));
    }
  }
  for (std::size_t n = flow.nodes().size(); n-- > 0;) {
    const NodeId node = flow.nodes()[n];
    std::int64_t longest = 0;
    for (const ValueId value : flow.made(node)) {
      for (const NodeId reader : flow.readers(value)) {
        longest = std::max(
            longest, saturating_add(crossing(flow.value(value), reader), levels.bottom[reader]));
      }
    }
    levels.bottom[node] = saturating_add(longest, flow.time_ns(node));
    levels.length_ns = std::max(levels.length_ns, levels.level(node));
  }
  return levels;
}

void bottom_levels_of_rest(const Flow& flow, const ClusterOfNode& clusters,
                           Table<NodeId, std::int64_t>& bottom) {
  for (std::size_t n = flow.nodes().size(); n-- > 0;) {
    const NodeId node = flow.nodes()[n];
    bottom[node] = 0;
    if (clusters[node].has_value()) continue;
    std::int64_t longest = 0;
    for (const ValueId value : flow.made(node)) {
      for (const NodeId reader : flow.readers(value)) {
        if (clusters[reader].has_value()) continue;
        longest = std::max(longest, saturating_add(flow.value(value).crossing_ns, bottom[reader]));
      }
    }
    bottom[node] = saturating_add(longest, flow.time_ns(node));
  }
}

}  // namespace pardnn
