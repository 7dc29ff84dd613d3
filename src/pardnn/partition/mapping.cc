// Mapping, step 1b of ParDNN: every secondary cluster joins a primary.
#include "pardnn/partition/mapping.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "pardnn/partition/fenwick.h"

namespace pardnn {
namespace {

constexpr int kRounds = 8;
constexpr std::array kSharesPercent = {50, 60, 70, 80, 90, 100};

struct Span {  // of positions among the distinct top levels
  std::size_t first = 0, last = 0;
  std::size_t length() const { return last - first; }
};

// What a secondary exchanges with other clusters, at mean transfer times.
struct Exchange {
  std::vector<std::int64_t> with_primary_ns;
  bool with_secondaries = false;
};

class Mapping {
 public:
  Mapping(const Flow& flow, const Slicing& slicing, Talk talk)
      : flow_(flow),
        slicing_(slicing),
        talk_(talk),
        cluster_of_(flow.nodes().size()),
        position_(flow.nodes().size()),
        work_ns_(slicing.clusters.size(), 0),
        span_(slicing.clusters.size()),
        seen_(flow.values().size(), 0),
        all_(0) {
    for (const NodeId node : flow.nodes()) cluster_of_[node] = *slicing.cluster_of[node];
    find_positions();
    for (std::size_t n = 0; n < slicing.clusters.size(); ++n) {
      for (const NodeId node : slicing.clusters[n]) work_ns_[n] += flow.time_ns(node);
      if (n < slicing.primary_count) {
        book(n, n);
      } else {
        span_[n] = span_of(slicing.clusters[n]);
        list_.push_back(n);
      }
    }
    // Head first in time: its level is the cluster's.
    std::sort(list_.begin(), list_.end(), [&](std::size_t a, std::size_t b) {
      const NodeId head_a = slicing.clusters[a].front(), head_b = slicing.clusters[b].front();
      return std::tuple(slicing.levels.level(head_b), head_a) <
             std::tuple(slicing.levels.level(head_a), head_b);
    });
  }

  PrimaryOfNode run() {
    for (int round = 0; round < kRounds && !list_.empty(); ++round) {
      if (!merge_round()) break;
    }
    for (const std::size_t secondary : list_) join_rest(secondary);
    PrimaryOfNode answer(flow_.nodes().size());
    for (const NodeId node : flow_.nodes()) answer[node] = cluster_of_[node];
    return answer;
  }

 private:
  std::size_t primaries() const { return slicing_.primary_count; }

  void find_positions() {
    std::vector<std::int64_t>& tops = tops_;
    for (const NodeId node : flow_.nodes()) tops.push_back(slicing_.levels.top[node]);
    std::sort(tops.begin(), tops.end());
    tops.erase(std::unique(tops.begin(), tops.end()), tops.end());
    trees_.assign(primaries(), Fenwick(tops.size()));
    all_ = Fenwick(tops.size());
    for (const NodeId node : flow_.nodes()) {
      position_[node] = position_of(slicing_.levels.top[node]);
      all_.add(position_[node], flow_.time_ns(node));
    }
  }

  // The first distinct top level that is not below.
  std::size_t position_of(std::int64_t top) const {
    return static_cast<std::size_t>(std::lower_bound(tops_.begin(), tops_.end(), top) -
                                    tops_.begin());
  }

  // From the last finish before its head to the first start after its tail; never empty.
  Span span_of(const std::vector<NodeId>& cluster) const {
    std::int64_t low = 0, high = slicing_.levels.length_ns;
    for (const ValueId value : flow_.read(cluster.front())) {
      const NodeId maker = flow_.value(value).maker;
      low = std::max(low, saturating_add(slicing_.levels.top[maker], flow_.time_ns(maker)));
    }
    for (const ValueId value : flow_.made(cluster.back())) {
      for (const NodeId reader : flow_.readers(value)) {
        high = std::min(high, slicing_.levels.top[reader]);
      }
    }
    const std::size_t first = std::min(position_of(low), tops_.size() - 1);
    return {first, std::max(position_of(high), first + 1)};
  }

  void book(std::size_t cluster, std::size_t primary) {
    for (const NodeId node : slicing_.clusters[cluster]) {
      trees_[primary].add(position_[node], flow_.time_ns(node));
      cluster_of_[node] = ClusterId{static_cast<std::uint32_t>(primary)};
    }
  }

  // Each distinct value between the secondary and another cluster counts once for that cluster.
  Exchange exchange(std::size_t secondary) {
    Exchange answer{.with_primary_ns = std::vector<std::int64_t>(primaries(), 0)};
    const auto count = [&](ClusterId other, std::int64_t ns) {
      if (index(other) < primaries()) {
        answer.with_primary_ns[index(other)] += ns;
      } else {
        answer.with_secondaries = true;
      }
    };
    const ClusterId own{static_cast<std::uint32_t>(secondary)};
    ++visit_;
    for (const NodeId node : slicing_.clusters[secondary]) {
      for (const ValueId value : flow_.read(node)) {
        const ClusterId maker = cluster_of_[flow_.value(value).maker];
        if (maker == own || std::exchange(seen_[value], visit_) == visit_) continue;
        count(maker, flow_.value(value).crossing_ns);
      }
      for (const ValueId value : flow_.made(node)) {
        std::vector<ClusterId> readers;
        for (const NodeId reader : flow_.readers(value)) {
          if (cluster_of_[reader] != own) readers.push_back(cluster_of_[reader]);
        }
        std::sort(readers.begin(), readers.end());
        readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
        for (const ClusterId reader : readers) count(reader, flow_.value(value).crossing_ns);
      }
    }
    return answer;
  }

  bool merge_round() {
    std::vector<Exchange> exchanges(slicing_.clusters.size());
    for (const std::size_t secondary : list_) exchanges[secondary] = exchange(secondary);
    std::vector<char> merged(slicing_.clusters.size(), 0);
    bool any = false;
    for (const int share : kSharesPercent) {
      const std::size_t count = (list_.size() * static_cast<std::size_t>(share) + 99) / 100;
      std::vector<std::size_t> prefix(list_.begin(),
                                      list_.begin() + static_cast<std::ptrdiff_t>(count));
      std::stable_sort(prefix.begin(), prefix.end(), [&](std::size_t a, std::size_t b) {
        return span_[a].length() < span_[b].length();
      });
      for (const std::size_t secondary : prefix) {
        if (merged[secondary] || !try_merge(secondary, exchanges[secondary])) continue;
        merged[secondary] = 1;
        any = true;
      }
    }
    std::erase_if(list_, [&](std::size_t secondary) { return merged[secondary] != 0; });
    return any;
  }

  bool try_merge(std::size_t secondary, const Exchange& exchange) {
    const std::vector<std::int64_t>& with = exchange.with_primary_ns;
    const std::int64_t greatest = *std::max_element(with.begin(), with.end());
    std::int64_t with_all = 0;
    for (const std::int64_t ns : with) with_all += ns;
    if (talk_ == Talk::kOnlyToIt ? exchange.with_secondaries || with_all > greatest
                                 : greatest < with_all - greatest) {
      return false;
    }
    const Span span = span_[secondary];
    std::vector<std::int64_t> work(primaries());
    for (std::size_t n = 0; n < primaries(); ++n) work[n] = trees_[n].sum(span.first, span.last);
    std::optional<std::size_t> target;
    for (std::size_t n = 0; n < primaries(); ++n) {
      if (with[n] == greatest && (!target || work[n] < work[*target])) target = n;
    }
    const auto [least, most] = std::minmax_element(work.begin(), work.end());
    const std::int64_t after = work[*target] + work_ns_[secondary];
    const std::int64_t fair =
        all_.sum(span.first, span.last) / static_cast<std::int64_t>(primaries());
    if (after > fair && after > std::max(*most, *least + work_ns_[secondary] + greatest) &&
        greatest < *most - *least) {
      return false;
    }
    book(secondary, *target);
    return true;
  }

  void join_rest(std::size_t secondary) {
    const Exchange talk = exchange(secondary);
    const Span span = span_[secondary];
    std::optional<std::pair<std::int64_t, std::size_t>> best;
    for (std::size_t n = 0; n < primaries(); ++n) {
      const std::pair offer(trees_[n].sum(span.first, span.last) - talk.with_primary_ns[n], n);
      if (!best || offer < *best) best = offer;
    }
    book(secondary, best->second);
  }

  const Flow& flow_;
  const Slicing& slicing_;
  const Talk talk_;
  Table<NodeId, ClusterId> cluster_of_;
  Table<NodeId, std::size_t> position_;
  std::vector<std::int64_t> tops_;  // distinct top levels, ascending
  std::vector<std::int64_t> work_ns_;
  std::vector<Span> span_;
  std::vector<std::size_t> list_;  // secondaries still to be mapped
  Table<ValueId, std::uint32_t> seen_;
  std::uint32_t visit_ = 0;
  std::vector<Fenwick> trees_;
  Fenwick all_;
};

}  // namespace

PrimaryOfNode map_to_primaries(const Flow& flow, const Slicing& slicing, Talk talk) {
  if (flow.nodes().empty()) return {};
  return Mapping(flow, slicing, talk).run();
}

bool communication_dominates(const Flow& flow, const Slicing& slicing) {
  std::int64_t transfers = 0, work = 0, first = 0;
  for (const ValueId value : flow.values()) {
    transfers = saturating_add(transfers, flow.value(value).crossing_ns);
  }
  for (const NodeId node : flow.nodes()) work = saturating_add(work, flow.time_ns(node));
  if (work == 0 || slicing.primary_count == 0) return false;
  for (const NodeId node : slicing.clusters.front()) {
    first = saturating_add(first, flow.time_ns(node));
  }
  if (first == 0) return false;
  __extension__ using Wide = __int128;
  const std::int64_t ratio = transfers / work + (transfers % work != 0);
  return ratio >= 10 && Wide{ratio} * first >= Wide{2} * work;
}

}  // namespace pardnn
