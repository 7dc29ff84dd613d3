#include "pardnn/plan/plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "pardnn/base/error.h"
#include "pardnn/check/check.h"
#include "pardnn/io/files.h"
#include "pardnn/io/pdg_words.h"
#include "pardnn/io/plan_json.h"
#include "pardnn/report/explanation.h"
#include "pardnn/sim/simulate.h"

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pardnn::python {

namespace {

using Keys = std::vector<std::string>;
using TransferTuple = std::tuple<std::string, std::optional<std::uint32_t>, std::string,
                                 std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
using BufferTuple =
    std::tuple<std::string, std::optional<std::string>, std::optional<std::uint32_t>, std::int64_t,
               std::int64_t, std::int64_t>;

std::string name_of(const PythonPlan& self, DeviceId device) {
  return self.problem->machine().devices[device].name;
}

std::string key_of(const PythonPlan& self, OpId op) {
  return encode_key(self.problem->graph().key(op));
}

// One number per device, by name.
template <class Number>
std::map<std::string, std::int64_t> by_device(const PythonPlan& self, Number number) {
  std::map<std::string, std::int64_t> numbers;
  for (const DeviceId device : self.problem->devices()) {
    numbers[name_of(self, device)] = number(device);
  }
  return numbers;
}

std::map<std::string, std::string> device_of(const PythonPlan& self) {
  std::map<std::string, std::string> devices;
  const Graph& graph = self.problem->graph();
  for (const OpId op : graph.ops()) {
    if (const auto device = self.plan.placement.ops[op]) {
      devices[key_of(self, op)] = name_of(self, *device);
    }
  }
  for (const VariableId variable : graph.variables()) {
    devices[encode_key(graph.key(variable))] =
        name_of(self, self.plan.placement.variables[variable]);
  }
  return devices;
}

std::map<std::string, Keys> sequences(const PythonPlan& self) {
  std::map<std::string, Keys> sequences;
  for (const DeviceId device : self.problem->devices()) {
    Keys& keys = sequences[name_of(self, device)];
    for (const OpId op : self.plan.sequences[device]) keys.push_back(key_of(self, op));
  }
  return sequences;
}

std::vector<TransferTuple> transfers(const PythonPlan& self) {
  std::vector<TransferTuple> tuples;
  for (const Transfer& transfer : self.plan.prediction.transfers) {
    tuples.emplace_back(key_of(self, transfer.producer), transfer.output,
                        name_of(self, transfer.to), transfer.request_ns, transfer.start_ns,
                        transfer.arrival_ns, transfer.bytes);
  }
  return tuples;
}

BufferTuple tuple_of(const PythonPlan& self, const Buffer& buffer) {
  const Graph& graph = self.problem->graph();
  std::optional<std::string> key;
  std::optional<std::uint32_t> number;
  if (buffer.tensor) {
    key = key_of(self, graph.tensor(*buffer.tensor).producer);
    number = graph.tensor(*buffer.tensor).number;
  } else if (buffer.variable) {
    key = encode_key(graph.key(*buffer.variable));
  } else if (buffer.op) {
    key = key_of(self, *buffer.op);
  }
  return {std::string(kind_name(buffer.what)),
          key,
          number,
          buffer.bytes,
          buffer.begin_ns,
          buffer.end_ns};
}

bool lasts_all_step(const Buffer& buffer) {
  return buffer.what == Buffer::What::kReserve || buffer.what == Buffer::What::kVariable ||
         buffer.what == Buffer::What::kEvery;
}

std::map<std::string, std::vector<BufferTuple>> buffers(const PythonPlan& self) {
  // A file can state anything, and only a plan that can run tells what it holds when.
  const auto wrong = check(*self.problem, self.plan, 1);
  if (!wrong.empty()) throw Error("plan: found " + wrong.front() + ", expected a valid plan");
  Simulator simulator(*self.problem);
  Sequences sequences = self.plan.sequences;
  PARDNN_CHECK(simulator.schedule(self.plan.placement, sequences) != nullptr);
  std::map<std::string, std::vector<BufferTuple>> tuples;
  for (const DeviceId device : self.problem->devices()) tuples[name_of(self, device)];
  for (const bool resident : {true, false}) {
    for (const Buffer& buffer : simulator.lifetimes()) {
      if (lasts_all_step(buffer) != resident) continue;
      tuples[name_of(self, buffer.device)].push_back(tuple_of(self, buffer));
    }
  }
  return tuples;
}

// A new array that owns its numbers.
auto starts(const PythonPlan& self) {
  const Graph& graph = self.problem->graph();
  auto* values = new std::vector<std::int64_t>(self.plan.prediction.start_ns.rows());
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) (*values)[index(op)] = -1;
  }
  nb::capsule owner(values, [](void* memory) noexcept {
    delete static_cast<std::vector<std::int64_t>*>(memory);
  });
  return nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(values->data(), {values->size()}, owner);
}

PythonPlan read(const std::string& path, PythonGraph& graph) {
  PlanFile file = read_plan(read_file(path), path, graph.graph());
  auto problem = std::make_shared<const Problem>(std::move(file.problem));
  // The file may be wrong, and only a plan that can run tells what it holds when.
  const bool fits = file.plan.score.fits();
  const auto wrong = fits ? std::vector<std::string>() : check(*problem, file.plan, 1);
  if (!wrong.empty())
    return {std::move(problem), std::move(file.plan), wrong.front(), "", std::nullopt};
  const auto explanation = explain(*problem, file.plan);
  return explained(std::move(problem), std::move(file.plan), explanation);
}

// The object of the same name in the command line's JSON.
nb::object explanation(const PythonPlan& self) {
  if (self.explanation.empty()) return nb::none();
  return nb::module_::import_("json").attr("loads")(self.explanation);
}

std::optional<std::map<std::string, std::size_t>> moves(const PythonPlan& self) {
  if (!self.moves) return std::nullopt;
  return {{{"ops_matched", self.moves->matched},
           {"ops_moved", self.moves->moved},
           {"ops_new", self.moves->added},
           {"ops_gone", self.moves->gone}}};
}

void add_numbers(nb::class_<PythonPlan>& plan) {
  plan.def_prop_ro(
          "starts", &starts, nb::rv_policy::automatic,
          "When each op starts: int64 ns of shape (ops,) by op number, -1 for `every` ops.")
      .def_prop_ro(
          "step_ns", [](const PythonPlan& self) { return self.plan.prediction.step_ns; },
          "Predicted length of a step.")
      .def_prop_ro(
          "bound_ns", [](const PythonPlan& self) { return self.plan.bound_ns; },
          "No plan on this machine has a shorter step.")
      .def_prop_ro(
          "bytes_sent", [](const PythonPlan& self) { return self.plan.prediction.bytes_sent; },
          "Bytes that cross devices in a step.")
      .def_prop_ro(
          "peaks",
          [](const PythonPlan& self) {
            return by_device(
                self, [&](DeviceId device) { return self.plan.prediction.peaks[device].bytes; });
          },
          "Predicted most bytes in use at one moment, by device.")
      .def_prop_ro(
          "any_timing_peaks",
          [](const PythonPlan& self) {
            return by_device(self, [&](DeviceId device) {
              return self.plan.prediction.peaks[device].any_timing_bytes;
            });
          },
          "Bytes that no timing of the same sequences can pass, by device.")
      .def_prop_ro(
          "peak_at_ns",
          [](const PythonPlan& self) {
            return by_device(
                self, [&](DeviceId device) { return self.plan.prediction.peaks[device].at_ns; });
          },
          "First moment of each peak, by device.")
      .def_prop_ro(
          "limits",
          [](const PythonPlan& self) {
            return by_device(self,
                             [&](DeviceId device) { return self.problem->limit_bytes(device); });
          },
          "Bytes that each device may use, by device.");
}

}  // namespace

PythonPlan explained(std::shared_ptr<const Problem> problem, Plan plan,
                     const std::optional<Explanation>& explanation) {
  std::string why = explanation_text(*problem, plan, explanation);
  std::string json = explanation ? explanation_json(*problem, *explanation) : "";
  return {std::move(problem), std::move(plan), std::move(why), std::move(json), std::nullopt};
}

void add_plan(nb::module_& module) {
  nb::class_<PythonPlan> plan(module, "Plan",
                              "Where every op and variable goes, in which order ops start, and "
                              "what is predicted of it.");
  plan.def_prop_ro(
          "fits", [](const PythonPlan& self) { return self.plan.score.fits(); },
          "Whether no device ever holds more than its limit.")
      .def_ro("why", &PythonPlan::why,
              "What stands in the way when the plan does not fit, and the smallest changes that\n"
              "would make it fit.")
      .def_prop_ro("explanation", &explanation,
                   nb::sig("def explanation(self) -> dict[str, typing.Any] | None"),
                   "The same as a dictionary, with the names of `explanation` in the JSON of\n"
                   "`pardnn plan --json`; None for a plan that fits.")
      .def_prop_ro(
          "moves", &moves,
          "What became of the plan that plan() was given as `from_plan`; else None.\n\n"
          "ops_matched: ops of the graph that it has, by key. ops_moved: those of them on\n"
          "another device than before. ops_new: ops that it has not. ops_gone: ops of it\n"
          "that the graph has not.")
      .def_prop_ro(
          "algorithm", [](const PythonPlan& self) { return self.plan.algorithm; },
          "The row that found it.")
      .def_prop_ro("device_of", &device_of,
                   "Device of every op and variable by key; `every` ops have none.")
      .def_prop_ro("sequences", &sequences, "Keys of the ops of each device, in order.")
      .def_prop_ro("transfers", &transfers,
                   "(producer key, output number or None for a control edge, destination,\n"
                   "request ns, start ns, arrival ns, bytes) of everything that is sent.")
      .def_prop_ro("buffers", &buffers,
                   "What each device holds, by device, in the order of allocation.\n\n"
                   "(what, key, output number, bytes as counted, allocated ns, freed ns), where\n"
                   "what is 'output' or 'copy' (of a tensor: key of its producer and number),\n"
                   "'workspace' (key of the op, no number), or one that lasts all step and comes\n"
                   "first: 'variable', 'every' (of a tensor) or 'reserve' (no key). A buffer that\n"
                   "is taken over is one entry, named by the first tensor in it. What is freed at\n"
                   "an instant is freed before anything is allocated at it. Raises pardnn.Error\n"
                   "for a plan that check() finds something wrong with.")
      .def(
          "write",
          [](const PythonPlan& self, const std::string& path) {
            write_file_atomically(path, write_plan(*self.problem, self.plan));
          },
          "path"_a, "Write the plan file (JSON).")
      .def_static("read", &read, "path"_a, "graph"_a,
                  "Read a plan file of this graph; pardnn.Error when it is one of another.");
  add_numbers(plan);
}

}  // namespace pardnn::python
