#include "pardnn/plan/bound.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "pardnn/plan/earliest.h"
#include "pardnn/plan/one_device.h"
#include "pardnn/plan/relaxed.h"
#include "pardnn/plan/shared_work.h"

namespace pardnn {
namespace {

// All ops of a unit run on one device, one after another. Beside it, per device, the ops that can
// run nowhere else.
class ByDevice {
 public:
  ByDevice(const Problem& problem, const HeadsAndTails& bounds)
      : problem_(problem), bounds_(bounds) {}

  std::int64_t unit_ns(UnitId unit) {
    std::optional<std::int64_t> least;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.is_allowed(unit, device)) continue;
      jobs_.clear();
      add(unit, device);
      const std::int64_t ns = done_ns();
      least = std::min(least.value_or(ns), ns);
    }
    return *least;
  }

  std::int64_t only_here_ns(DeviceId device) {
    jobs_.clear();
    for (const UnitId unit : problem_.units()) {
      if (problem_.allowed(unit).count() == 1 && problem_.is_allowed(unit, device)) {
        add(unit, device);
      }
    }
    return done_ns();
  }

 private:
  void add(UnitId unit, DeviceId device) {
    for (const OpId op : problem_.ops(unit)) {
      jobs_.push_back({bounds_.head_ns[op], problem_.duration_ns(op, device), bounds_.tail_ns[op]});
    }
  }
  std::int64_t done_ns() {
    std::sort(jobs_.begin(), jobs_.end(), starts_before);
    return one_device_.ns(jobs_);
  }

  const Problem& problem_;
  const HeadsAndTails& bounds_;
  std::vector<Job> jobs_;
  OneDevice one_device_;
};

}  // namespace

std::int64_t lower_bound_ns(const Problem& problem) {
  const Relaxed relaxed = relax(problem);
  const HeadsAndTails bounds = heads_and_tails(problem, relaxed);
  std::int64_t most_ns = shared_work_ns(problem, bounds);
  ByDevice by_device(problem, bounds);
  for (const UnitId unit : problem.units()) most_ns = std::max(most_ns, by_device.unit_ns(unit));
  for (const DeviceId device : problem.devices()) {
    most_ns = std::max(most_ns, by_device.only_here_ns(device));
  }
  return most_ns;
}

}  // namespace pardnn
