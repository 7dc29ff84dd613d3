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
std::int64_t unit_and_device_ns(const Problem& problem, const HeadsAndTails& bounds) {
  std::int64_t most = 0;
  Table<DeviceId, std::vector<Job>> only_here(problem.device_count());
  std::vector<Job> jobs;
  for (const UnitId unit : problem.units()) {
    std::optional<std::int64_t> least;
    for (const DeviceId device : problem.devices()) {
      if (!problem.is_allowed(unit, device)) continue;
      jobs.clear();
      for (const OpId op : problem.ops(unit)) {
        jobs.push_back({bounds.head_ns[op], problem.duration_ns(op, device), bounds.tail_ns[op]});
      }
      if (problem.allowed(unit).count() == 1) {
        only_here[device].insert(only_here[device].end(), jobs.begin(), jobs.end());
      }
      const std::int64_t ns = one_device_ns(jobs);
      least = std::min(least.value_or(ns), ns);
    }
    most = std::max(most, *least);
  }
  for (std::vector<Job>& there : only_here) most = std::max(most, one_device_ns(there));
  return most;
}

}  // namespace

std::int64_t lower_bound_ns(const Problem& problem) {
  const Relaxed relaxed = relax(problem);
  const HeadsAndTails bounds = heads_and_tails(problem, relaxed);
  return std::max(unit_and_device_ns(problem, bounds), shared_work_ns(problem, bounds));
}

}  // namespace pardnn
