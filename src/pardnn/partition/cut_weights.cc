// What lumps weigh and how much each device may take.
#include "pardnn/partition/cut_weights.h"

#include <algorithm>
#include <optional>

#include "pardnn/partition/chunks.h"
#include "pardnn/partition/edges.h"
#include "pardnn/partition/orders.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kSlackPerMille = 100;

std::int64_t part(std::int64_t whole, Wide of, Wide all) {
  return all <= 0 ? 0 : static_cast<std::int64_t>(whole * of / all);
}

// The slice of every op. Those that start together stay together.
Table<OpId, std::size_t> cut_into_slices(const Problem& problem,
                                         const Table<OpId, std::int64_t>& start_ns,
                                         std::size_t slices) {
  const std::vector<OpId> order = order_by(problem.graph(), start_ns);
  std::int64_t all_ns = 0, done_ns = 0;
  for (const OpId op : order) all_ns += problem.mean_duration_ns(op);
  Table<OpId, std::size_t> slice_of(problem.graph().ops().size(), 0);
  std::size_t slice = 0;
  std::optional<std::int64_t> before_ns;
  for (const OpId op : order) {
    if (start_ns[op] != before_ns) {
      slice = static_cast<std::size_t>(part(static_cast<std::int64_t>(slices), done_ns, all_ns));
    }
    before_ns = start_ns[op];
    slice_of[op] = slice;
    done_ns += problem.mean_duration_ns(op);
  }
  return slice_of;
}

// Of mean times, transfers at zero.
std::vector<std::int64_t> longest_paths(const Problem& problem,
                                        const Table<OpId, std::size_t>& slice_of,
                                        std::size_t slices) {
  const Graph& graph = problem.graph();
  std::vector<std::int64_t> longest_ns(slices, 0);
  Table<OpId, std::int64_t> end_ns(graph.ops().size(), 0);
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId>) {
      if (slice_of[producer] == slice_of[op]) end_ns[op] = std::max(end_ns[op], end_ns[producer]);
    });
    end_ns[op] = saturating_add(end_ns[op], problem.mean_duration_ns(op));
    std::int64_t& longest = longest_ns[slice_of[op]];
    longest = std::max(longest, end_ns[op]);
  }
  return longest_ns;
}

void weigh_time(const Problem& problem, const Table<OpId, std::size_t>& slice_of,
                std::size_t slices, CutGraph& graph, CutCaps& caps) {
  std::vector<std::int64_t> sum_ns(slices, 0);
  for (const OpId op : problem.graph().ops()) {
    if (problem.graph().is_every(op)) continue;
    const std::int64_t time_ns = problem.mean_duration_ns(op);
    graph.weights[index(*problem.unit(op)) * graph.weight_count + slice_of[op]] += time_ns;
    sum_ns[slice_of[op]] += time_ns;
  }
  const std::vector<std::int64_t> longest_ns = longest_paths(problem, slice_of, slices);
  const Shares shares = device_shares(problem, 1, 0);
  Wide all_shares = 0;
  for (const std::int64_t share : shares) all_shares += share;
  for (const DeviceId device : problem.devices()) {
    for (std::size_t slice = 0; slice < slices; ++slice) {
      const std::int64_t even_ns = part(sum_ns[slice], shares[device], all_shares);
      caps.caps[index(device) * caps.weight_count + slice] =
          std::max(even_ns + part(even_ns, kSlackPerMille, 1000), longest_ns[slice]);
    }
  }
}

// All bytes together weigh as much as all time, so that what is above the caps can be added up.
void weigh_bytes(const Problem& problem, const ByteCaps& bytes, Wide all_bytes, CutGraph& graph,
                 CutCaps& caps) {
  std::int64_t all_ns = 0;
  for (const std::int64_t weight : graph.weights) all_ns += weight;
  const std::size_t last = graph.weight_count - 1;
  for (const UnitId unit : problem.units()) {
    graph.weights[index(unit) * graph.weight_count + last] =
        part(all_ns, bytes.bytes(unit), all_bytes);
  }
  for (const DeviceId device : problem.devices()) {
    const Wide room = std::min<Wide>(bytes.room_bytes(device), all_bytes);
    caps.caps[index(device) * caps.weight_count + last] = part(all_ns, room, all_bytes);
  }
}

}  // namespace

CutCaps weigh(const Problem& problem, const Table<OpId, std::int64_t>& start_ns, std::size_t slices,
              const ByteCaps& bytes, CutGraph& graph) {
  Wide all_bytes = 0;
  for (const UnitId unit : problem.units()) all_bytes += bytes.bytes(unit);
  bool bytes_bind = false;
  for (const DeviceId device : problem.devices()) {
    bytes_bind |= bytes.room_bytes(device) < all_bytes;
  }
  CutCaps caps;
  caps.weight_count = graph.weight_count = slices + (bytes_bind ? 1 : 0);
  caps.caps.assign(problem.device_count() * caps.weight_count, 0);
  graph.weights.assign(graph.lumps().size() * graph.weight_count, 0);
  weigh_time(problem, cut_into_slices(problem, start_ns, slices), slices, graph, caps);
  if (bytes_bind) weigh_bytes(problem, bytes, all_bytes, graph, caps);
  return caps;
}

}  // namespace pardnn
