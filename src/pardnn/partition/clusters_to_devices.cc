// Clusters to devices, the end of step 1b of ParDNN.
#include "pardnn/partition/clusters_to_devices.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pardnn {
namespace {

// The cost of the node on that device; what is not allowed there counts its mean.
std::int64_t time_on(const Problem& problem, const Flow& flow, NodeId node, DeviceId device) {
  std::int64_t ns = 0;
  for (const OpId op : flow.ops(node)) {
    ns = saturating_add(ns, problem.is_allowed(*problem.unit(op), device)
                                ? problem.duration_ns(op, device)
                                : problem.mean_duration_ns(op));
  }
  return ns;
}

struct Claim {
  std::int64_t pinned_ns;
  ClusterId primary;
  DeviceId device;
};

// Work of each primary that may run on one device only.
std::vector<Claim> claims(const Problem& problem, const Flow& flow,
                          const PrimaryOfNode& primary_of) {
  const std::size_t count = problem.device_count();
  std::vector<std::int64_t> pinned_ns(count * count, 0);
  for (const NodeId node : flow.nodes()) {
    const DeviceSet& allowed = problem.allowed(*problem.unit(flow.ops(node).front()));
    if (count == 1 || allowed.count() != 1) continue;
    std::size_t device = 0;
    while (!allowed[device]) ++device;
    pinned_ns[index(primary_of[node]) * count + device] += flow.time_ns(node);
  }
  std::vector<Claim> answer;
  for (const ClusterId primary : IdRange<ClusterId>(count)) {
    for (const DeviceId device : problem.devices()) {
      const std::int64_t ns = pinned_ns[index(primary) * count + index(device)];
      if (ns > 0) answer.push_back({ns, primary, device});
    }
  }
  std::stable_sort(answer.begin(), answer.end(),
                   [](const Claim& a, const Claim& b) { return a.pinned_ns > b.pinned_ns; });
  return answer;
}

bool alike(const Link& a, const Link& b) {
  return a.bytes_per_second == b.bytes_per_second && a.overhead_ns == b.overhead_ns &&
         a.latency_ns == b.latency_ns;
}

}  // namespace

DeviceOfPrimary clusters_to_devices(const Problem& problem, const Flow& flow,
                                    const PrimaryOfNode& primary_of) {
  const std::size_t count = problem.device_count();
  Table<ClusterId, std::optional<DeviceId>> device_of(count);
  DeviceSet used;
  for (const Claim& claim : claims(problem, flow, primary_of)) {
    if (device_of[claim.primary].has_value() || used[index(claim.device)]) continue;
    device_of[claim.primary] = claim.device;
    used.set(index(claim.device));
  }
  Table<ClusterId, std::int64_t> work_ns(count, 0);
  Table<DeviceId, std::int64_t> all_ns(count, 0);  // of everything, on each device
  for (const NodeId node : flow.nodes()) {
    std::int64_t& work = work_ns[primary_of[node]];
    work = saturating_add(work, flow.time_ns(node));
    for (const DeviceId device : problem.devices()) {
      all_ns[device] = saturating_add(all_ns[device], time_on(problem, flow, node, device));
    }
  }
  std::vector<ClusterId> heaviest;
  std::vector<DeviceId> fastest;
  for (const ClusterId primary : work_ns.ids()) heaviest.push_back(primary);
  for (const DeviceId device : problem.devices()) fastest.push_back(device);
  std::stable_sort(heaviest.begin(), heaviest.end(),
                   [&](ClusterId a, ClusterId b) { return work_ns[a] > work_ns[b]; });
  std::stable_sort(fastest.begin(), fastest.end(),
                   [&](DeviceId a, DeviceId b) { return all_ns[a] < all_ns[b]; });
  DeviceOfPrimary answer(count, DeviceId{});
  auto free = fastest.begin();
  for (const ClusterId primary : heaviest) {
    if (!device_of[primary].has_value()) {
      while (used[index(*free)]) ++free;
      used.set(index(*free));
      device_of[primary] = *free;
    }
    answer[primary] = *device_of[primary];
  }
  return answer;
}

bool devices_differ(const Problem& problem) {
  const Machine& machine = problem.machine();
  for (const UnitId unit : problem.units()) {
    if (problem.allowed(unit).count() != problem.device_count()) return true;
  }
  const Link* first = nullptr;
  for (const DeviceId from : problem.devices()) {
    if (machine.devices[from].kind != machine.devices[DeviceId{}].kind) return true;
    for (const DeviceId to : problem.devices()) {
      if (from == to) continue;
      if (!problem.has_link(from, to)) return true;
      const Link& link = problem.link(from, to);
      if (first != nullptr && !alike(link, *first)) return true;
      first = &link;
    }
  }
  return false;
}

DeviceOfPrimary swap_devices(
    DeviceOfPrimary devices, int trials,
    const std::function<std::optional<std::int64_t>(const DeviceOfPrimary&)>& step_ns) {
  std::optional<std::int64_t> best = step_ns(devices);
  for (bool fell = true; fell;) {
    fell = false;
    for (const ClusterId a : devices.ids()) {
      for (ClusterId b = next(a); devices.contains(b); b = next(b)) {
        if (--trials < 0) return devices;
        std::swap(devices[a], devices[b]);
        const std::optional<std::int64_t> reached = step_ns(devices);
        if (reached.has_value() && (!best.has_value() || *reached < *best)) {
          best = reached;
          fell = true;
        } else {
          std::swap(devices[a], devices[b]);
        }
      }
    }
  }
  return devices;
}

}  // namespace pardnn
