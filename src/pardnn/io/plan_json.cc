#include "pardnn/io/plan_json.h"

#include <utility>
#include <vector>

#include "pardnn/base/version.h"
#include "pardnn/io/graph_hash.h"
#include "pardnn/io/json.h"
#include "pardnn/io/machine_json.h"

namespace pardnn {

namespace json = boost::json;

namespace {

json::string text_of(std::string_view text) { return json::string(text); }

json::object graph_object(const Graph& graph) {
  return {{"hash", graph_hash(graph)},
          {"ops", graph.ops().size()},
          {"variables", graph.variables().size()}};
}

json::object rules_object(const Rules& rules) {
  return {{"dispatch", rules.dispatch == Dispatch::kFifo ? "fifo" : "sequence"},
          {"given_order", rules.given_order},
          {"contention", rules.contention},
          {"margin_per_mille", rules.margin_per_mille},
          {"any_timing", rules.any_timing}};
}

Rules read_rules(const JsonObject& object) {
  Rules rules;
  const std::string dispatch = object.text("dispatch");
  if (dispatch != "fifo" && dispatch != "sequence") {
    object.fail("dispatch", dispatch, "sequence or fifo");
  }
  rules.dispatch = dispatch == "fifo" ? Dispatch::kFifo : Dispatch::kSequence;
  rules.given_order = object.boolean("given_order", false);
  rules.contention = object.boolean("contention", true);
  rules.margin_per_mille = object.integer("margin_per_mille");
  rules.any_timing = object.boolean("any_timing", false);
  return rules;
}

std::string costs_of(const Graph& graph) {
  for (const auto& [key, value] : graph.about()) {
    if (key == "costs") return value;
  }
  return "stated in the graph file";
}

json::array transfer_row(const Problem& problem, const Transfer& transfer) {
  const auto& devices = problem.machine().devices;
  json::array row{text_of(problem.graph().key(transfer.producer))};
  if (transfer.output) {
    row.emplace_back(*transfer.output);
  } else {
    row.emplace_back(nullptr);
  }
  row.emplace_back(devices[transfer.from].name);
  row.emplace_back(devices[transfer.to].name);
  for (const std::int64_t number :
       {transfer.bytes, transfer.request_ns, transfer.start_ns, transfer.arrival_ns}) {
    row.emplace_back(number);
  }
  return row;
}

json::object device_object(const Problem& problem, const Plan& plan, DeviceId device) {
  json::array ops, starts, variables;
  for (const OpId op : plan.sequences[device]) {
    ops.emplace_back(text_of(problem.graph().key(op)));
    starts.emplace_back(plan.prediction.start_ns[op]);
  }
  for (const VariableId variable : problem.graph().variables()) {
    if (plan.placement.variables[variable] == device) {
      variables.emplace_back(text_of(problem.graph().key(variable)));
    }
  }
  const Peak& peak = plan.prediction.peaks[device];
  return {{"device", problem.machine().devices[device].name},
          {"limit_bytes", problem.limit_bytes(device)},
          {"peak_bytes", peak.bytes},
          {"peak_at_ns", peak.at_ns},
          {"any_timing_peak_bytes", peak.any_timing_bytes},
          {"variables", std::move(variables)},
          {"sequence", std::move(ops)},
          {"starts_ns", std::move(starts)}};
}

// Reads the lists of one device into the plan.
class PlanReader {
 public:
  PlanReader(const Problem& problem, const JsonObject& file) : problem_(problem), file_(file) {
    const Graph& graph = problem.graph();
    plan_.placement.ops.resize(graph.ops().size());
    plan_.placement.variables.resize(graph.variables().size());
    device_seen_.resize(problem.device_count());
    variable_seen_.resize(graph.variables().size());
    plan_.sequences.resize(problem.device_count());
    plan_.prediction.start_ns.resize(graph.ops().size());
    plan_.prediction.peaks.resize(problem.device_count());
  }

  Plan read() {
    std::size_t number = 0;
    for (const json::value& item : file_.array("devices")) {
      read_device(JsonObject(item, file_.source(), "devices[" + std::to_string(number++) + "]"));
    }
    for (const DeviceId device : problem_.devices()) {
      if (!device_seen_[device]) {
        file_.fail("devices", "nothing of " + problem_.machine().devices[device].name,
                   "every device of the machine once");
      }
    }
    for (const OpId op : problem_.graph().ops()) {
      if (!problem_.graph().is_every(op) && !plan_.placement.ops[op]) {
        file_.fail("devices", "op " + std::string(problem_.graph().key(op)) + " in no sequence",
                   "every op in one");
      }
    }
    for (const VariableId variable : problem_.graph().variables()) {
      if (!variable_seen_[variable]) {
        file_.fail("devices",
                   "variable " + std::string(problem_.graph().key(variable)) + " on no device",
                   "every variable on one");
      }
    }
    for (const json::value& item : file_.array("transfers")) read_transfer(item);
    plan_.prediction.step_ns = file_.integer("step_ns");
    plan_.prediction.bytes_sent = file_.integer("bytes_sent");
    plan_.score = {file_.integer("overflow_bytes"), plan_.prediction.step_ns,
                   plan_.prediction.bytes_sent};
    plan_.algorithm = file_.text("algorithm");
    plan_.bound_ns = file_.integer("bound_ns");
    plan_.seed = static_cast<std::uint64_t>(file_.integer("seed"));
    plan_.steps = file_.integer("steps");
    check_fits();
    return std::move(plan_);
  }

 private:
  DeviceId device_of(const json::value& value, std::string_view member) const {
    const auto device = value.is_string()
                            ? problem_.machine().find(std::string_view(value.get_string()))
                            : std::nullopt;
    if (!device) file_.fail(member, describe(value), "the name of a device of this plan's machine");
    return *device;
  }

  OpId op_of(const json::value& value, std::string_view member) const {
    const auto op = value.is_string()
                        ? problem_.graph().find_op(std::string_view(value.get_string()))
                        : std::nullopt;
    if (!op) file_.fail(member, describe(value), "the key of an op of the graph");
    return *op;
  }

  void read_device(const JsonObject& object) {
    const DeviceId device = device_of(object.at("device"), "devices");
    if (device_seen_[device]) {
      object.fail("device", describe(object.at("device")) + " again", "each device once");
    }
    device_seen_[device] = true;
    const std::int64_t limit = problem_.limit_bytes(device);
    if (object.integer("limit_bytes", limit) != limit) {
      object.fail("limit_bytes", describe(object.at("limit_bytes")),
                  std::to_string(limit) + ", by its machine and margin");
    }
    const json::array& ops = object.array("sequence");
    const json::array& starts = object.array("starts_ns");
    if (starts.size() != ops.size()) {
      object.fail("starts_ns", std::to_string(starts.size()) + " numbers",
                  std::to_string(ops.size()) + ", one per op of the sequence");
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const OpId op = op_of(ops[i], "sequence");
      if (plan_.placement.ops[op]) object.fail("sequence", describe(ops[i]) + " again", "it once");
      if (!starts[i].is_int64()) object.fail("starts_ns", describe(starts[i]), "an integer");
      plan_.placement.ops[op] = device;
      plan_.sequences[device].push_back(op);
      plan_.prediction.start_ns[op] = starts[i].get_int64();
    }
    for (const json::value& item : object.array("variables")) {
      const auto variable =
          item.is_string() ? problem_.graph().find_variable(std::string_view(item.get_string()))
                           : std::nullopt;
      if (!variable || variable_seen_[*variable]) {
        object.fail("variables", describe(item), "keys of variables, each once");
      }
      variable_seen_[*variable] = true;
      plan_.placement.variables[*variable] = device;
    }
    plan_.prediction.peaks[device] = {object.integer("peak_bytes"), object.integer("peak_at_ns"),
                                      object.integer("any_timing_peak_bytes")};
  }

  // What follows from the rest of the file is not believed but compared.
  void check_fits() const {
    if (file_.boolean("fits", plan_.score.fits()) == plan_.score.fits()) return;
    file_.fail("fits", describe(file_.at("fits")),
               std::string(plan_.score.fits() ? "true" : "false") + ", since overflow_bytes is " +
                   std::to_string(plan_.score.overflow_bytes));
  }

  void read_transfer(const json::value& item) {
    const json::array* row = item.if_array();
    if (row == nullptr || row->size() != 8) {
      file_.fail("transfers", describe(item),
                 "[producer, output, from, to, bytes, request, start, arrival]");
    }
    Transfer transfer{op_of((*row)[0], "transfers"), std::nullopt,
                      device_of((*row)[2], "transfers"), device_of((*row)[3], "transfers")};
    for (std::size_t i = 4; i < 8; ++i) {
      if (!(*row)[i].is_int64()) file_.fail("transfers", describe((*row)[i]), "an integer");
    }
    if ((*row)[1].is_int64()) {
      transfer.output = static_cast<std::uint32_t>((*row)[1].get_int64());
    } else if (!(*row)[1].is_null()) {
      file_.fail("transfers", describe((*row)[1]), "the number of an output, or null");
    }
    transfer.bytes = (*row)[4].get_int64();
    transfer.request_ns = (*row)[5].get_int64();
    transfer.start_ns = (*row)[6].get_int64();
    transfer.arrival_ns = (*row)[7].get_int64();
    plan_.prediction.transfers.push_back(transfer);
  }

  const Problem& problem_;
  const JsonObject& file_;
  Table<VariableId, char> variable_seen_;
  Table<DeviceId, char> device_seen_;
  Plan plan_;
};

void check_graph(const JsonObject& file, const Graph& graph) {
  const JsonObject stated = file.object("graph");
  if (stated.text("hash") == graph_hash(graph)) return;
  const std::int64_t ops = stated.integer("ops"), variables = stated.integer("variables");
  const auto count = static_cast<std::int64_t>(graph.ops().size());
  const auto variable_count = static_cast<std::int64_t>(graph.variables().size());
  std::string difference = "costs, sizes, edges or keys differ";
  if (ops != count) {
    difference = "it has " + std::to_string(ops) + " ops, this one " + std::to_string(count);
  } else if (variables != variable_count) {
    difference = "it has " + std::to_string(variables) + " variables, this one " +
                 std::to_string(variable_count);
  }
  throw Error(file.source() + ": graph: found a plan of another graph (" + difference +
              "), expected one of this graph; plan again");
}

}  // namespace

std::string stated_problem(const Problem& problem) {
  return json::serialize(json::array{graph_object(problem.graph()), rules_object(problem.rules()),
                                     parse_json(write_machine(problem.machine()), "machine")});
}

std::string write_plan(const Problem& problem, const Plan& plan) {
  const Graph& graph = problem.graph();
  json::object file{{"pardnn_plan", kPlanVersion}, {"version", kPardnnVersion}};
  file["graph"] = graph_object(graph);
  file["costs"] = costs_of(graph);
  file["algorithm"] = plan.algorithm;
  file["seed"] = static_cast<std::int64_t>(plan.seed);
  file["steps"] = plan.steps;
  file["rules"] = rules_object(problem.rules());
  file["fits"] = plan.score.fits();
  file["overflow_bytes"] = plan.score.overflow_bytes;
  file["step_ns"] = plan.prediction.step_ns;
  file["bound_ns"] = plan.bound_ns;
  file["bytes_sent"] = plan.prediction.bytes_sent;
  file["machine"] = parse_json(write_machine(problem.machine()), "machine");
  json::array devices;
  for (const DeviceId device : problem.devices()) {
    devices.push_back(device_object(problem, plan, device));
  }
  file["devices"] = std::move(devices);
  json::array transfers;
  for (const Transfer& transfer : plan.prediction.transfers) {
    transfers.push_back(transfer_row(problem, transfer));
  }
  file["transfers"] = std::move(transfers);
  return format_json(file);
}

PlanFile read_plan(std::string_view text, std::string_view source,
                   std::shared_ptr<const Graph> graph) {
  const json::value value = parse_json(text, source);
  const JsonObject file(value, source, "");
  file.expect_version("pardnn_plan", kPlanVersion);
  check_graph(file, *graph);
  Machine machine =
      read_machine(json::serialize(file.at("machine")), std::string(source) + ": machine");
  Problem problem(std::move(graph), std::move(machine), read_rules(file.object("rules")));
  Plan plan = PlanReader(problem, file).read();
  return {std::move(problem), std::move(plan)};
}

}  // namespace pardnn
