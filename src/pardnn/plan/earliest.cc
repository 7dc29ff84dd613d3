#include "pardnn/plan/earliest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pardnn/plan/together.h"
#include "pardnn/plan/window.h"

namespace pardnn {
namespace {

// Ancestors looked at for one op.
std::size_t window_for(std::size_t ops) {
  if (ops <= 20'000) return 128;
  return ops <= 200'000 ? 32 : 6;
}

// Work that has to be done after one moment and before another; grows by one op after another.
class Share {
 public:
  explicit Share(std::size_t devices) : devices_(static_cast<std::int64_t>(devices)) {}

  // Before the op the path `in` must pass on one device, `apart_in` on all others; after it `out`
  // and `apart_out`, perhaps with another device as the one.
  void add(std::int64_t least_ns, std::int64_t in_ns, std::int64_t apart_in_ns, std::int64_t out_ns,
           std::int64_t apart_out_ns) {
    work_ns_ += least_ns;
    in_ns_ = std::min(in_ns_, in_ns);
    out_ns_ = std::min(out_ns_, out_ns);
    apart_in_ns_ = std::min(apart_in_ns_, apart_in_ns);
    apart_out_ns_ = std::min(apart_out_ns_, apart_out_ns);
  }
  // Time between the two moments at least.
  std::int64_t ns() const {
    const std::int64_t one_ns = work_ns_ + in_ns_ + out_ns_;
    const std::int64_t all_ns = one_ns + (devices_ - 1) * (apart_in_ns_ + apart_out_ns_);
    return std::min(one_ns, (all_ns + devices_ - 1) / devices_);
  }

 private:
  std::int64_t devices_, work_ns_ = 0;
  std::int64_t in_ns_ = kCertain, out_ns_ = kCertain;
  std::int64_t apart_in_ns_ = kCertain, apart_out_ns_ = kCertain;
};

// One direction: heads along `before`, tails if that holds what comes after.
class Sweep {
 public:
  Sweep(const Problem& problem, const Relaxed& relaxed, const Lists<OpId, Relaxed::Edge>& before,
        bool ids_rise)
      : problem_(problem),
        window_(relaxed, before, ids_rise, window_for(before.size())),
        head_ns_(before.size(), 0) {}

  // The heads of all that it waits for must be known.
  void visit(OpId op) {
    if (!problem_.unit(op)) return;
    window_.open(op, head_ns_);
    unit_ = *problem_.unit(op);
    std::int64_t most_ns = std::max(longest_ns(), shared_ns());
    neighbours_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      neighbours_.push_back({is_unit(ancestor, unit_) ? kCertain : ancestor.key_ns(),
                             {ancestor.head_ns, ancestor.least_ns, ancestor.out.path_ns}});
    }
    most_ns = std::max(most_ns, together_.or_apart_ns(neighbours_));
    if (const auto anchor = window_.anchor()) {
      if (window_.find_ways_in(*anchor) >= 2) {
        const Ancestor& at = window_.ancestors()[*anchor];
        most_ns = std::max({most_ns, anchored_ns(at, most_ns), shared_after_ns(at)});
      }
    }
    head_ns_[op] = most_ns;
  }

  Table<OpId, std::int64_t> take() { return std::move(head_ns_); }

 private:
  using Weighed = std::pair<std::int64_t, const Ancestor*>;
  static bool heaviest_first(const Weighed& a, const Weighed& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  }
  bool is_unit(const Ancestor& ancestor, UnitId unit) const {
    return problem_.unit(ancestor.op) == unit;
  }
  bool can_share(const Ancestor& ancestor) const {
    return (problem_.allowed(*problem_.unit(ancestor.op)) & problem_.allowed(unit_)).any();
  }

  std::int64_t longest_ns() const {
    std::int64_t ns = 0;
    for (const Ancestor& ancestor : window_.ancestors()) {
      ns = std::max(ns, ancestor.finish_ns() + ancestor.out.path_ns);
      if (!can_share(ancestor)) ns = std::max(ns, ancestor.key_ns());
    }
    return ns;
  }

  std::int64_t shared_ns() {
    by_weight_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      by_weight_.emplace_back(ancestor.head_ns, &ancestor);
    }
    std::sort(by_weight_.begin(), by_weight_.end(), heaviest_first);
    Share share(problem_.device_count());
    std::int64_t most_ns = 0;
    for (const auto& [head_ns, ancestor] : by_weight_) {
      share.add(ancestor->least_ns, 0, 0, ancestor->out.path_ns, ancestor->out.apart_ns());
      most_ns = std::max(most_ns, head_ns + share.ns());
    }
    return most_ns;
  }

  std::int64_t shared_after_ns(const Ancestor& anchor) {
    by_weight_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      if (!ancestor.in.any()) continue;
      by_weight_.emplace_back(ancestor.in.apart_ns() + ancestor.out.apart_ns(), &ancestor);
    }
    std::sort(by_weight_.begin(), by_weight_.end(), heaviest_first);
    Share share(problem_.device_count());
    std::int64_t most_ns = 0;
    for (const auto& [apart_ns, ancestor] : by_weight_) {
      share.add(ancestor->least_ns, ancestor->in.path_ns, ancestor->in.apart_ns(),
                ancestor->out.path_ns, ancestor->out.apart_ns());
      most_ns = std::max(most_ns, anchor.finish_ns() + share.ns());
    }
    return most_ns;
  }

  // The anchor is on the op's device, or it is not. Any bound not above `known_ns` is as good.
  std::int64_t anchored_ns(const Ancestor& anchor, std::int64_t known_ns) {
    const std::int64_t beside_ns = can_share(anchor) ? beside_anchor_ns(anchor) : kCertain;
    if (beside_ns <= known_ns || is_unit(anchor, unit_)) return beside_ns;
    return std::min(beside_ns, apart_from_anchor_ns(anchor));
  }

  // What lies between the two and is elsewhere must come and go.
  std::int64_t beside_anchor_ns(const Ancestor& anchor) {
    neighbours_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      std::int64_t key_ns = ancestor.key_ns();
      if (ancestor.in.any()) {
        key_ns = std::max(key_ns, anchor.finish_ns() + ancestor.in.apart_ns() + ancestor.least_ns +
                                      ancestor.out.apart_ns());
      }
      if (is_unit(ancestor, unit_) || &ancestor == &anchor) key_ns = kCertain;
      neighbours_.push_back({key_ns, {ancestor.head_ns, ancestor.least_ns, ancestor.out.path_ns}});
    }
    return together_.or_apart_ns(neighbours_);
  }

  // What lies between the two must come if it is on the op's device, and go if on the anchor's.
  std::int64_t apart_from_anchor_ns(const Ancestor& anchor) {
    neighbours_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      if (&ancestor == &anchor) continue;
      std::int64_t head_ns = ancestor.head_ns;
      if (ancestor.in.any()) {
        head_ns = std::max(head_ns, anchor.finish_ns() + ancestor.in.apart_ns());
      }
      neighbours_.push_back({is_unit(ancestor, unit_) ? kCertain : ancestor.key_ns(),
                             {head_ns, ancestor.least_ns, ancestor.out.path_ns}});
    }
    const std::int64_t on_own_ns = together_.or_apart_ns(neighbours_);
    neighbours_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      const bool is_there = is_unit(ancestor, *problem_.unit(anchor.op));
      if (!is_there && !ancestor.in.any()) continue;
      const std::int64_t key_ns =
          std::max(anchor.finish_ns() + ancestor.in.apart_ns(), ancestor.head_ns) +
          ancestor.least_ns + ancestor.out.path_ns;
      neighbours_.push_back({is_there ? kCertain : key_ns,
                             {ancestor.head_ns, ancestor.least_ns, ancestor.out.apart_ns()}});
    }
    return std::max({anchor.key_ns(), on_own_ns, together_.or_apart_ns(neighbours_),
                     on_two_or_more_ns(anchor)});
  }

  // With the two apart: what is on neither's device must come and go; the rest is shared by two.
  std::int64_t on_two_or_more_ns(const Ancestor& anchor) {
    by_weight_.clear();
    for (const Ancestor& ancestor : window_.ancestors()) {
      if (!ancestor.in.any()) continue;
      by_weight_.emplace_back(
          anchor.finish_ns() + ancestor.in.apart_ns() + ancestor.least_ns + ancestor.out.apart_ns(),
          &ancestor);
    }
    std::sort(by_weight_.begin(), by_weight_.end(), heaviest_first);
    Share share(std::min<std::size_t>(2, problem_.device_count()));
    std::int64_t two_ns = 0;
    for (const auto& [key_ns, ancestor] : by_weight_) {
      if (two_ns >= key_ns) return two_ns;
      share.add(ancestor->least_ns, ancestor->in.path_ns, ancestor->in.apart_ns(),
                ancestor->out.path_ns, ancestor->out.apart_ns());
      const std::int64_t next_ns = std::max(two_ns, anchor.finish_ns() + share.ns());
      if (next_ns >= key_ns) return key_ns;
      two_ns = next_ns;
    }
    return two_ns;
  }

  const Problem& problem_;
  Window window_;
  Table<OpId, std::int64_t> head_ns_;
  UnitId unit_{};  // of the op that is looked at
  Together together_;
  std::vector<Neighbour> neighbours_;
  std::vector<Weighed> by_weight_;
};

}  // namespace

HeadsAndTails heads_and_tails(const Problem& problem, const Relaxed& relaxed) {
  Sweep forward(problem, relaxed, relaxed.before, true);
  Sweep backward(problem, relaxed, relaxed.after, false);
  const auto count = static_cast<std::uint32_t>(problem.graph().ops().size());
  for (std::uint32_t n = 0; n < count; ++n) forward.visit(OpId{n});
  for (std::uint32_t n = count; n-- > 0;) backward.visit(OpId{n});
  return {forward.take(), backward.take()};
}

}  // namespace pardnn
