// What would be enough, when a plan does not fit: more memory, or more devices.
#include "pardnn/partition/enough.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pardnn/base/quantity.h"
#include "pardnn/problem/more_devices.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/times.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

// The least capacities under which the plan fits.
Table<DeviceId, std::int64_t> needed_capacities(const Problem& problem, const Plan& plan) {
  Table<DeviceId, std::int64_t> needed(problem.device_count(), 0);
  const std::int64_t used_per_mille = 1000 - problem.rules().margin_per_mille;
  std::int64_t most = 0;
  bool are_alike = true;
  for (const DeviceId device : problem.devices()) {
    const Peak& peak = plan.prediction.peaks[device];
    const Wide bytes = problem.rules().any_timing ? peak.any_timing_bytes : peak.bytes;
    // limit = capacity - floor(capacity * margin / 1000) >= bytes.
    const auto least = static_cast<std::int64_t>(
        std::min<Wide>(kMaxQuantity, (bytes * 1000 + used_per_mille - 1) / used_per_mille));
    needed[device] = std::max(problem.capacity_bytes(device), roundly_above(least));
    most = std::max(most, needed[device]);
    are_alike &= problem.capacity_bytes(device) == problem.capacity_bytes(DeviceId{});
  }
  // Equal devices stay equal.
  if (are_alike) needed.assign(needed.size(), most);
  return needed;
}

// By how much all capacities must grow to hold these, per mille, rounded up.
std::int64_t growth_per_mille(const Problem& problem, const Table<DeviceId, std::int64_t>& needed) {
  std::int64_t growth = 1000;
  for (const DeviceId device : problem.devices()) {
    const Wide capacity = std::max<std::int64_t>(1, problem.capacity_bytes(device));
    const Wide per_mille = (Wide{needed[device]} * 1000 + capacity - 1) / capacity;
    growth = std::max(growth, static_cast<std::int64_t>(std::min<Wide>(per_mille, kMaxQuantity)));
  }
  return growth;
}

// A growth of all capacities that is proven not to be enough, or not proven to be; per mille.
std::int64_t too_little_per_mille(const std::vector<Impossible>& reasons) {
  std::int64_t growth = 1000;
  for (const Impossible& reason : reasons) {
    if (reason.why == Impossible::Why::kPieces) continue;
    const Wide per_mille = (Wide{reason.bytes} * 1000 - 1) / std::max<Wide>(1, reason.room_bytes);
    growth = std::max(growth, static_cast<std::int64_t>(std::min<Wide>(per_mille, kMaxQuantity)));
  }
  return growth;
}

Table<DeviceId, std::int64_t> grown_capacities(const Problem& problem, std::int64_t per_mille) {
  Table<DeviceId, std::int64_t> grown(problem.device_count(), 0);
  for (const DeviceId device : problem.devices()) {
    const Wide bytes = (Wide{problem.capacity_bytes(device)} * per_mille + 999) / 1000;
    grown[device] = roundly_above(static_cast<std::int64_t>(std::min<Wide>(bytes, kMaxQuantity)));
  }
  return grown;
}

// Plans the graph on other machines, each time with an equal part of the time that is left.
class Trials {
 public:
  Trials(const Problem& problem, std::string_view algorithm, const Run& run)
      : problem_(problem), algorithm_(algorithm), run_(run) {
    const std::size_t ops = std::max<std::size_t>(1, problem.graph().ops().size());
    each_ = static_cast<int>(std::min<std::size_t>(kEnoughTrials, kEnoughOps / ops));
    left_ = 2 * each_;
    run_.steps = 0;
    if (run.budget) deadline_ = std::chrono::steady_clock::now() + *run.budget;
    run_.deadline = deadline_;
    run_.budget.reset();
  }

  int each() const { return each_; }  // of the two questions
  bool is_over() const { return left_ == 0 || run_.stopped(); }

  bool fits_on(Machine machine) {
    Run run = run_;
    if (deadline_) {
      const auto now = std::chrono::steady_clock::now();
      run.deadline = now + (*deadline_ - now) / left_;
    }
    --left_;
    const Problem larger(problem_.shared_graph(), std::move(machine), problem_.rules());
    return make_plan(larger, algorithm_, run).score.fits();
  }

 private:
  const Problem& problem_;
  const std::string_view algorithm_;
  Run run_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  int each_ = 0, left_ = 0;
};

void try_more_memory(const Problem& problem, Trials& trials, Enough& enough) {
  std::int64_t too_little = too_little_per_mille(enough.impossible);
  std::int64_t fits = growth_per_mille(problem, enough.capacity_bytes);
  for (int n = 0; n < trials.each() && fits - too_little > 10 && !trials.is_over(); ++n) {
    const std::int64_t middle = too_little + (fits - too_little) / 2;
    Machine machine = problem.machine();
    const Table<DeviceId, std::int64_t> capacities = grown_capacities(problem, middle);
    for (const DeviceId device : problem.devices()) {
      machine.devices[device].capacity_bytes = capacities[device];
    }
    if (trials.fits_on(std::move(machine))) {
      fits = middle;
      enough.capacity_bytes = capacities;
    } else {
      too_little = middle;
    }
  }
}

DeviceId last_device(const Problem& problem) {
  return DeviceId{static_cast<std::uint32_t>(problem.device_count() - 1)};
}

// A unit that is larger than any device it may be on is larger than one more of them.
MoreDevices proven_of_devices(const Problem& problem, const std::vector<Impossible>& reasons) {
  MoreDevices devices{.never = false, .least = problem.device_count() + 1, .tried = 0, .found = {}};
  const DeviceId last = last_device(problem);
  const std::int64_t room = problem.limit_bytes(last) - problem.reserve_bytes(last);
  for (const Impossible& reason : reasons) {
    std::int64_t least = 0;
    switch (reason.why) {
      case Impossible::Why::kUnit:
        devices.never = true;
        break;
      case Impossible::Why::kPieces:
        least = reason.bytes;
        break;
      case Impossible::Why::kVariables:
        // What is confined to some devices may be so by their names.
        if (reason.devices.count() < problem.device_count()) break;
        [[fallthrough]];
      case Impossible::Why::kMoment:
        devices.never |= room <= 0;
        if (room <= 0) break;
        least = static_cast<std::int64_t>(problem.device_count()) +
                (reason.bytes - reason.room_bytes - 1) / room + 1;
        break;
    }
    devices.least = std::max(devices.least, static_cast<std::size_t>(least));
  }
  return devices;
}

// The least number that is not ruled out, then twice as many as there are, then between the two.
void try_more_devices(const Problem& problem, Trials& trials, MoreDevices& devices) {
  const std::size_t count = problem.device_count();
  const std::size_t most = std::min(kMaxDevices, 2 * count);
  if (devices.never || devices.least > most) return;
  std::size_t too_few = devices.least - 1, next = devices.least;
  for (int n = 0; n < trials.each() && !trials.is_over(); ++n) {
    devices.tried = std::max(devices.tried, next);
    if (trials.fits_on(with_more_devices(problem.machine(), next - count))) {
      devices.found = next;
    } else {
      too_few = next;
    }
    if (devices.found.value_or(most + 1) - too_few <= 1) return;
    next = devices.found ? too_few + (*devices.found - too_few) / 2 : most;
  }
}

}  // namespace

Enough find_enough(const Problem& problem, const Plan& plan, std::string_view algorithm,
                   const Run& run) {
  Enough enough{.impossible = proven_impossible(problem),
                .capacity_bytes = needed_capacities(problem, plan),
                .devices = {}};
  enough.devices = proven_of_devices(problem, enough.impossible);
  Trials trials(problem, algorithm, run);
  try_more_memory(problem, trials, enough);
  try_more_devices(problem, trials, enough.devices);
  return enough;
}

}  // namespace pardnn
