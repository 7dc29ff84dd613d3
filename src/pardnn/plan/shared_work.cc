#include "pardnn/plan/shared_work.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

// The bound by shared work. Devices of one kind get one weight, an integer; the sum over all
// devices stands for 1.
class SharedWork {
 public:
  SharedWork(const Problem& problem, const HeadsAndTails& bounds)
      : problem_(problem), bounds_(bounds) {
    std::map<std::string, std::size_t> kind_of;
    for (DeviceId device : problem.devices()) {
      const auto [kind, is_new] =
          kind_of.emplace(problem.machine().devices[device].kind, first_of_kind_.size());
      if (is_new) {
        first_of_kind_.push_back(device);
        devices_of_kind_.emplace_back();
        count_.push_back(0);
      }
      devices_of_kind_[kind->second].set(index(device));
      ++count_[kind->second];
    }
  }

  std::int64_t bound_ns() const {
    const std::size_t kinds = first_of_kind_.size();
    std::int64_t most = windows_ns(std::vector<std::int64_t>(kinds, 1));
    if (kinds == 1) return most;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      std::vector<std::int64_t> alone(kinds, 0);
      alone[kind] = 1;
      most = std::max(most, windows_ns(alone));
    }
    return std::max(most, windows_ns(climb(relative_speeds())));
  }

 private:
  static constexpr std::int64_t kFull = std::int64_t{1} << 20;

  Wide whole(std::span<const std::int64_t> weights) const {
    Wide sum = 0;
    for (std::size_t kind = 0; kind < weights.size(); ++kind) sum += weights[kind] * count_[kind];
    return sum;
  }

  Wide weighted_ns(OpId op, std::span<const std::int64_t> weights) const {
    const DeviceSet& allowed = problem_.allowed(*problem_.unit(op));
    std::optional<Wide> least;
    for (std::size_t kind = 0; kind < weights.size(); ++kind) {
      if ((allowed & devices_of_kind_[kind]).none()) continue;
      const Wide one = Wide{problem_.duration_ns(op, first_of_kind_[kind])} * weights[kind];
      least = std::min(least.value_or(one), one);
    }
    return *least;
  }

  // Of all the work, without heads and tails.
  std::int64_t bound_ns(std::span<const std::int64_t> weights) const {
    const Wide all = whole(weights);
    Wide sum = 0;
    for (OpId op : problem_.graph().ops()) {
      if (!problem_.graph().is_every(op)) sum += weighted_ns(op, weights);
    }
    return static_cast<std::int64_t>((sum + all - 1) / all);
  }

  // Over all heads h and tails q at once: ops enter by falling head, and the leaves of a tree stand
  // for tails, rising. A leaf of tail q is worth whole * q, which counts once the op is there, and
  // the work of all leaves from it to the right.
  std::int64_t windows_ns(std::span<const std::int64_t> weights) const {
    std::vector<OpId> by_head;
    for (OpId op : problem_.graph().ops()) {
      if (!problem_.graph().is_every(op)) by_head.push_back(op);
    }
    if (by_head.empty()) return 0;
    std::vector<OpId> by_tail = by_head;
    const auto before = [](const Table<OpId, std::int64_t>& ns) {
      return [&ns](OpId a, OpId b) { return ns[a] < ns[b]; };
    };
    std::stable_sort(by_head.begin(), by_head.end(), before(bounds_.head_ns));
    std::stable_sort(by_tail.begin(), by_tail.end(), before(bounds_.tail_ns));
    Table<OpId, std::size_t> leaf(problem_.graph().ops().size());
    for (std::size_t n = 0; n < by_tail.size(); ++n) leaf[by_tail[n]] = n;

    struct Node {
      Wide work = 0, best = -1;  // best: the greatest worth of its leaves, -1 for none
    };
    const std::size_t leaves = std::bit_ceil(by_head.size());
    std::vector<Node> tree(2 * leaves);
    const Wide all = whole(weights);
    Wide most = 0;
    for (std::size_t n = by_head.size(); n-- > 0;) {
      const OpId op = by_head[n];
      const Wide work = weighted_ns(op, weights);
      std::size_t node = leaves + leaf[op];
      tree[node] = {work, all * bounds_.tail_ns[op] + work};
      for (node /= 2; node > 0; node /= 2) {
        const Node &left = tree[2 * node], &right = tree[2 * node + 1];
        tree[node].work = left.work + right.work;
        tree[node].best = right.best;
        if (left.best >= 0) tree[node].best = std::max(right.best, left.best + right.work);
      }
      most = std::max(most, all * bounds_.head_ns[op] + tree[1].best);
    }
    return static_cast<std::int64_t>((most + all - 1) / all);
  }

  // Of each kind, from the ops that may run on all of them; the fastest is kFull.
  std::vector<std::int64_t> relative_speeds() const {
    std::vector<Wide> sums(first_of_kind_.size(), 0);
    for (OpId op : problem_.graph().ops()) {
      if (problem_.graph().is_every(op)) continue;
      const DeviceSet& allowed = problem_.allowed(*problem_.unit(op));
      const auto on_all = std::ranges::all_of(
          devices_of_kind_, [&](const DeviceSet& devices) { return (allowed & devices).any(); });
      if (!on_all) continue;
      for (std::size_t kind = 0; kind < sums.size(); ++kind) {
        sums[kind] += problem_.duration_ns(op, first_of_kind_[kind]);
      }
    }
    const Wide fastest = std::ranges::min(sums);
    std::vector<std::int64_t> speeds;
    for (Wide sum : sums) {
      const Wide speed = sum == 0 ? Wide{kFull} : fastest * kFull / sum;
      speeds.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(speed)));
    }
    return speeds;
  }

  // Ops are not equally fast on all kinds; a few steps of one weight at a time, halved each round.
  std::vector<std::int64_t> climb(std::vector<std::int64_t> weights) const {
    std::int64_t best = bound_ns(weights);
    for (std::int64_t part = 4; part <= 32; part *= 2) {
      for (std::int64_t& weight : weights) {
        const std::int64_t before = weight;
        for (std::int64_t tried : {before + before / part, before - before / part}) {
          const std::int64_t saved = weight;
          weight = tried;
          const std::int64_t bound = bound_ns(weights);
          if (bound > best) {
            best = bound;
          } else {
            weight = saved;
          }
        }
      }
    }
    return weights;
  }

  const Problem& problem_;
  const HeadsAndTails& bounds_;
  std::vector<DeviceId> first_of_kind_;
  std::vector<DeviceSet> devices_of_kind_;
  std::vector<std::int64_t> count_;
};

}  // namespace

std::int64_t shared_work_ns(const Problem& problem, const HeadsAndTails& bounds) {
  return SharedWork(problem, bounds).bound_ns();
}

}  // namespace pardnn
