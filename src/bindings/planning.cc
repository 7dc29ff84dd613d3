#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "pardnn/base/error.h"
#include "pardnn/check/check.h"
#include "pardnn/io/files.h"
#include "pardnn/io/old_plan_json.h"
#include "pardnn/io/pdg_words.h"
#include "pardnn/io/plan_json.h"
#include "pardnn/partition/given.h"
#include "pardnn/partition/rows.h"
#include "pardnn/partition/warm_start.h"
#include "pardnn/report/explanation.h"

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pardnn::python {

namespace {

Rules rules_of(const std::string& sequence, bool contention, std::int64_t margin,
               const std::optional<std::string>& guarantee) {
  Rules rules;
  rules.contention = contention;
  rules.margin_per_mille = margin;
  if (sequence == "fifo") {
    rules.dispatch = Dispatch::kFifo;
  } else if (sequence == "given") {
    rules.given_order = true;
  } else if (sequence != "free") {
    throw Error("sequence: found '" + sequence + "', expected free, given or fifo");
  }
  if (guarantee) {
    if (*guarantee != "any-timing") {
      throw Error("guarantee: found '" + *guarantee + "', expected any-timing");
    }
    rules.any_timing = true;
  }
  return rules;
}

// Runs `work` on a thread of its own and sets `stop` when Python has an interrupt waiting, so that
// Ctrl-C ends a long search with the best plan found and is then raised.
template <class Work>
auto interruptible(std::atomic<bool>& stop, Work work) {
  using namespace std::chrono_literals;
  auto result = std::async(std::launch::async, std::move(work));
  bool interrupted = false;
  while (true) {
    {
      nb::gil_scoped_release released;
      if (result.wait_for(20ms) == std::future_status::ready) break;
    }
    if (!interrupted && PyErr_CheckSignals() != 0) {
      interrupted = true;
      PyErr_Clear();
      stop = true;
    }
  }
  if (interrupted) {
    result.wait();
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
  return result.get();
}

// A plan, or the path of a file with one; of this graph or another.
OldPlan old_plan(const Problem& problem, const std::variant<const PythonPlan*, std::string>& from) {
  if (const auto* path = std::get_if<std::string>(&from)) {
    return read_old_plan(read_file(*path), *path, problem);
  }
  const PythonPlan& plan = *std::get<const PythonPlan*>(from);
  return read_old_plan(write_plan(*plan.problem, plan.plan), "from_plan", problem);
}

PythonPlan plan(PythonGraph& graph, const Machine& machine, const std::string& algorithm,
                std::optional<std::int64_t> steps, std::optional<double> budget, std::uint64_t seed,
                std::int64_t margin, const std::string& sequence, bool contention,
                const std::optional<std::string>& guarantee,
                const std::optional<std::variant<const PythonPlan*, std::string>>& from_plan) {
  if (!is_algorithm(algorithm)) {
    std::string names;
    for (const std::string_view name : algorithm_names()) {
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    throw Error("algorithm: found '" + algorithm + "', expected one of " + names);
  }
  const Rules rules = rules_of(sequence, contention, margin, guarantee);
  auto problem = std::make_shared<const Problem>(graph.graph(), machine, rules);
  std::atomic<bool> stop = false;
  Run run;
  run.seed = seed;
  run.steps = steps;
  run.stop = &stop;
  if (budget) {
    run.budget = std::chrono::nanoseconds(static_cast<std::int64_t>(*budget * 1e9));
  }
  if (!from_plan) {
    return interruptible(stop, [&] {
      Plan found = make_plan(*problem, algorithm, run);
      const auto explanation = explain(*problem, found, algorithm, run);
      return explained(problem, std::move(found), explanation);
    });
  }
  if (algorithm != "auto") {
    throw Error("from_plan: found it with the algorithm " + algorithm + ", expected auto");
  }
  const OldPlan old = old_plan(*problem, *from_plan);
  return interruptible(stop, [&] {
    Plan found = plan_from(*problem, old, run);
    const auto explanation = explain(*problem, found, algorithm, run);
    const Moved moves = moves_from(*problem, old, found);
    PythonPlan answer = explained(problem, std::move(found), explanation);
    answer.moves = moves;
    return answer;
  });
}

DeviceId find_device(const Machine& machine, const std::string& name) {
  const auto device = machine.find(name);
  if (!device)
    throw Error("placement: found the device '" + name + "', expected one of the machine");
  return *device;
}

// A given placement, key by key: every op that is no `every` op and every variable is in it.
Placement placement_of(const Problem& problem, const std::map<std::string, std::string>& devices) {
  const Graph& graph = problem.graph();
  Placement placement;
  placement.ops.resize(graph.ops().size());
  placement.variables.resize(graph.variables().size());
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    const auto found = devices.find(encode_key(graph.key(op)));
    if (found == devices.end()) {
      throw Error("placement: found no device of op " + std::string(graph.key(op)) +
                  ", expected one for every op");
    }
    placement.ops[op] = find_device(problem.machine(), found->second);
  }
  for (const VariableId variable : graph.variables()) {
    const auto found = devices.find(encode_key(graph.key(variable)));
    if (found == devices.end()) {
      throw Error("placement: found no device of variable " + std::string(graph.key(variable)) +
                  ", expected one for every variable");
    }
    placement.variables[variable] = find_device(problem.machine(), found->second);
  }
  return placement;
}

PythonPlan simulate(PythonGraph& graph, const Machine& machine,
                    const std::map<std::string, std::string>& devices,
                    const std::optional<std::map<std::string, std::vector<std::string>>>& order,
                    std::int64_t margin, const std::string& sequence, bool contention) {
  auto problem = std::make_shared<const Problem>(
      graph.graph(), machine, rules_of(sequence, contention, margin, std::nullopt));
  const Placement placement = placement_of(*problem, devices);
  std::optional<Sequences> sequences;
  if (order) {
    sequences.emplace(problem->device_count());
    for (const auto& [device, keys] : *order) {
      auto& ops = (*sequences)[find_device(machine, device)];
      for (const std::string& key : keys) {
        const auto op = problem->graph().find_op(PdgWords().key(key));
        if (!op) throw Error("order: found '" + key + "', expected the key of an op");
        ops.push_back(*op);
      }
    }
  }
  Plan plan = plan_of(*problem, placement, sequences);
  const auto explanation = explain(*problem, plan);
  return explained(std::move(problem), std::move(plan), explanation);
}

}  // namespace

void add_planning(nb::module_& module) {
  module.def("plan", &plan, "graph"_a, "machine"_a, nb::kw_only(), "algorithm"_a = "auto",
             "steps"_a = nb::none(), "budget"_a = nb::none(), "seed"_a = 0, "margin"_a = 0,
             "sequence"_a = "free", "contention"_a = true, "guarantee"_a = nb::none(),
             "from_plan"_a = nb::none(),
             "Place every op of the graph on the machine, and order each device's ops.\n\n"
             "budget: seconds. steps: of the search, reproducible, wins over the budget.\n"
             "margin: per mille of each device's memory that stays free. sequence: 'free',\n"
             "'given' (the graph's own order) or 'fifo'. from_plan: a Plan, or the path of a plan\n"
             "file, of this graph or one like it (ops are matched by key): few ops move, and\n"
             "Plan.moves says how many. A plan that does not fit is an answer,\n"
             "not an error: see Plan.fits and Plan.why. Raises pardnn.Error for a problem that\n"
             "cannot be planned, such as unknown costs or pins in conflict.");
  module.def("simulate", &simulate, "graph"_a, "machine"_a, "placement"_a, "order"_a = nb::none(),
             nb::kw_only(), "margin"_a = 0, "sequence"_a = "free", "contention"_a = true,
             "What a placement of your own leads to.\n\n"
             "placement: device name by key, of every op (but `every` ops) and every variable.\n"
             "order: keys in sequence by device name; without it ops are listed by the longest\n"
             "path that follows them.");
  module.def(
      "check",
      [](PythonGraph& graph, const PythonPlan& plan) {
        if (graph.graph() != plan.problem->shared_graph()) {
          throw Error("found a plan of another graph, expected one of this graph");
        }
        return check(*plan.problem, plan.plan);
      },
      "graph"_a, "plan"_a,
      "Recompute a plan and its prediction independently; what is wrong with it, in sentences.");
  module.def(
      "algorithms",
      [] {
        std::vector<std::string> names;
        for (const std::string_view name : algorithm_names()) names.emplace_back(name);
        return names;
      },
      "Names that plan() takes as `algorithm`.");
}

}  // namespace pardnn::python
