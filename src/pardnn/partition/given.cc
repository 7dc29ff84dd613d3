#include "pardnn/partition/given.h"

#include <string>

#include "pardnn/base/error.h"
#include "pardnn/plan/bound.h"
#include "pardnn/partition/confirm.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/times.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {
namespace {

// Throws when members of one unit are on different devices, or on one that is not allowed.
UnitPlacement units_of(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  UnitPlacement devices(problem.units().size());
  for (const UnitId unit : problem.units()) {
    std::optional<DeviceId> together;
    const auto join = [&](std::string_view key, DeviceId device) {
      const std::string& name = problem.machine().devices[device].name;
      if (!problem.is_allowed(unit, device)) {
        throw Error("placement: found " + std::string(key) + " on " + name +
                    ", expected a device that its costs, its group and its pins allow");
      }
      if (together && *together != device) {
        throw Error("placement: found " + std::string(key) + " on " + name +
                    ", expected it where the others of its group are, on " +
                    problem.machine().devices[*together].name);
      }
      together = device;
    };
    for (const OpId op : problem.ops(unit)) join(graph.key(op), *placement.ops[op]);
    for (const VariableId variable : problem.variables(unit)) {
      join(graph.key(variable), placement.variables[variable]);
    }
    devices[unit] = *together;
  }
  return devices;
}

void check_links(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  const auto cross = [&](OpId producer, OpId reader) {
    const auto from = placement.ops[producer], to = placement.ops[reader];
    if (!from || *from == *to || problem.has_link(*from, *to)) return;
    const auto& devices = problem.machine().devices;
    throw Error("placement: found " + std::string(graph.key(producer)) + " on " +
                devices[*from].name + " read by " + std::string(graph.key(reader)) + " on " +
                devices[*to].name + ", expected devices with a link between them");
  };
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId reader : graph.readers(tensor)) cross(op, reader);
    }
    for (const OpId reader : graph.control_readers(op)) cross(op, reader);
  }
}

void check_complete(const Problem& problem, const Placement& placement,
                    const Sequences& sequences) {
  Table<OpId, char> listed(problem.graph().ops().size(), 0);
  const auto complain = [&](OpId op, const char* found) {
    throw Error("order: found op " + std::string(problem.graph().key(op)) + " " + found +
                ", expected each op once, in the sequence of its device");
  };
  for (const DeviceId device : problem.devices()) {
    for (const OpId op : sequences[device]) {
      if (placement.ops[op] != device) complain(op, "on another device");
      if (listed[op]) complain(op, "twice");
      listed[op] = 1;
    }
  }
  for (const OpId op : problem.graph().ops()) {
    if (placement.ops[op] && !listed[op]) complain(op, "nowhere");
  }
}

}  // namespace

Plan plan_of(const Problem& problem, const Placement& placement,
             const std::optional<Sequences>& sequences) {
  const UnitPlacement units = units_of(problem, placement);
  check_links(problem, placement);
  Plan plan;
  plan.placement = placement;
  if (sequences) {
    check_complete(problem, placement, *sequences);
    plan.sequences = *sequences;
  } else {
    const Times times(problem);
    plan.sequences = sequences_of(
        problem, placement,
        list_order(problem, times, units, bottom_levels(problem, times), Take::kPriority));
  }
  auto prediction = predict(problem, plan.placement, plan.sequences);
  if (!prediction) {
    throw Error("order: found sequences that, with the edges, form a cycle, expected none");
  }
  plan.prediction = std::move(*prediction);
  plan.score = score_of(problem, plan.prediction);
  plan.algorithm = "given";
  plan.bound_ns = lower_bound_ns(problem);
  confirm(problem, plan);
  return plan;
}

}  // namespace pardnn
