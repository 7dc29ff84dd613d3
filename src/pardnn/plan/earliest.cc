#include "pardnn/plan/earliest.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "pardnn/plan/one_device.h"

namespace pardnn {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Ancestors looked at for one op: 10 thousand ops take a fifth of a second, a million 3.
std::size_t window_for(std::size_t ops) {
  if (ops <= 20'000) return 128;
  return ops <= 200'000 ? 48 : 8;
}

// One direction: heads along `before`, tails if that holds what comes after.
class Sweep {
 public:
  Sweep(const Problem& problem, const Relaxed& relaxed, const Lists<OpId, Relaxed::Edge>& before)
      : problem_(problem),
        least_ns_(relaxed.least_ns),
        before_(before),
        device_count_(static_cast<std::int64_t>(problem.device_count())),
        window_(window_for(before.size())),
        head_ns_(before.size(), 0),
        taken_for_(before.size()) {}

  // The heads of all that it waits for must be known.
  void visit(OpId op) {
    if (!problem_.unit(op)) return;
    collect(op);
    head_ns_[op] = std::max({at_least_ns_, together_or_apart_ns(), shared_ns()});
  }

  Table<OpId, std::int64_t> take() { return std::move(head_ns_); }

 private:
  // An ancestor, and a path from it to the op: the times strictly between and the least crossing.
  struct Label {
    std::int64_t key_ns;
    OpId op;
    std::int64_t path_ns, crossing_ns;
    bool operator<(const Label& other) const {
      return key_ns != other.key_ns ? key_ns < other.key_ns : op > other.op;
    }
  };
  struct Ancestor {
    Job job;
    std::int64_t key_ns;
  };

  // The ancestors of greatest key, falling.
  void collect(OpId op) {
    open_.clear();
    ancestors_.clear();
    sure_count_ = 0;
    at_least_ns_ = 0;
    const UnitId unit = *problem_.unit(op);
    const DeviceSet& allowed = problem_.allowed(unit);
    reach(op, op, 0, kNever);
    while (!open_.empty() && ancestors_.size() < window_) {
      std::pop_heap(open_.begin(), open_.end());
      const Label label = open_.back();
      open_.pop_back();
      if (taken_for_[label.op] == op) continue;
      taken_for_[label.op] = op;
      const UnitId other = *problem_.unit(label.op);
      const Job job{head_ns_[label.op], least_ns_[label.op], label.path_ns};
      at_least_ns_ = std::max(at_least_ns_, job.head_ns + job.least_ns);
      if ((problem_.allowed(other) & allowed).none()) {
        at_least_ns_ = std::max(at_least_ns_, label.key_ns);
      }
      ancestors_.push_back({job, label.key_ns});
      if (other == unit) {
        std::rotate(ancestors_.begin() + sure_count_, ancestors_.end() - 1, ancestors_.end());
        ++sure_count_;
      }
      reach(label.op, op, label.path_ns + least_ns_[label.op], label.crossing_ns);
    }
  }

  void reach(OpId from, OpId op, std::int64_t path_ns, std::int64_t crossing_ns) {
    for (const Relaxed::Edge& edge : before_[from]) {
      if (taken_for_[edge.op] == op) continue;
      const std::int64_t least_ns = std::min(crossing_ns, edge.crossing_ns);
      const std::int64_t finish_ns = head_ns_[edge.op] + least_ns_[edge.op];
      open_.push_back({finish_ns + path_ns + least_ns, edge.op, path_ns, least_ns});
      std::push_heap(open_.begin(), open_.end());
    }
  }

  // S of the first so many.
  std::int64_t one_device_bound_ns(std::size_t count) {
    jobs_.clear();
    for (std::size_t n = 0; n < count; ++n) jobs_.push_back(ancestors_[n].job);
    return one_device_ns(jobs_);
  }

  // S rises and keys fall, so the least maximum lies where they cross: at the first j whose S is
  // not below the next key, or just before it.
  std::int64_t together_or_apart_ns() {
    auto low = static_cast<std::size_t>(sure_count_), high = ancestors_.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (one_device_bound_ns(middle) >= ancestors_[middle].key_ns) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const std::int64_t together_ns = one_device_bound_ns(low);
    if (low == static_cast<std::size_t>(sure_count_)) return together_ns;
    return std::min(together_ns, ancestors_[low - 1].key_ns);
  }

  std::int64_t shared_ns() {
    std::sort(ancestors_.begin(), ancestors_.end(), [](const Ancestor& a, const Ancestor& b) {
      return std::tie(a.job.head_ns, a.job.tail_ns, a.key_ns, a.job.least_ns) >
             std::tie(b.job.head_ns, b.job.tail_ns, b.key_ns, b.job.least_ns);
    });
    std::int64_t work_ns = 0, path_ns = kNever, apart_ns = kNever, most_ns = 0;
    for (const auto& [job, key_ns] : ancestors_) {
      work_ns += job.least_ns;
      path_ns = std::min(path_ns, job.tail_ns);
      apart_ns = std::min(apart_ns, key_ns - job.head_ns - job.least_ns);
      const std::int64_t on_one_ns = work_ns + path_ns;
      const std::int64_t on_all_ns = on_one_ns + (device_count_ - 1) * apart_ns;
      const std::int64_t rounded_ns = (on_all_ns + device_count_ - 1) / device_count_;
      most_ns = std::max(most_ns, job.head_ns + std::min(on_one_ns, rounded_ns));
    }
    return most_ns;
  }

  const Problem& problem_;
  const Table<OpId, std::int64_t>& least_ns_;
  const Lists<OpId, Relaxed::Edge>& before_;
  std::int64_t device_count_;
  std::size_t window_;
  Table<OpId, std::int64_t> head_ns_;

  // Of the op that is looked at.
  Table<OpId, std::optional<OpId>> taken_for_;  // the op for which it was taken last
  std::vector<Label> open_;                     // heap
  std::vector<Ancestor> ancestors_;
  std::ptrdiff_t sure_count_ = 0;  // so many of the first are on its device for certain
  std::int64_t at_least_ns_ = 0;
  std::vector<Job> jobs_;
};

}  // namespace

HeadsAndTails heads_and_tails(const Problem& problem, const Relaxed& relaxed) {
  Sweep forward(problem, relaxed, relaxed.before), backward(problem, relaxed, relaxed.after);
  const auto count = static_cast<std::uint32_t>(problem.graph().ops().size());
  for (std::uint32_t n = 0; n < count; ++n) forward.visit(OpId{n});
  for (std::uint32_t n = count; n-- > 0;) backward.visit(OpId{n});
  return {forward.take(), backward.take()};
}

}  // namespace pardnn
