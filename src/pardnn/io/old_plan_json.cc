#include "pardnn/io/old_plan_json.h"

#include <algorithm>
#include <string>
#include <vector>

#include "pardnn/base/integers.h"
#include "pardnn/io/json.h"
#include "pardnn/io/plan_json.h"

namespace pardnn {

namespace json = boost::json;

namespace {

std::string_view text_of(const JsonObject& object, std::string_view member,
                         const json::value& value) {
  if (!value.is_string()) object.fail(member, describe(value), "keys");
  return value.get_string();
}

class OldPlanReader {
 public:
  OldPlanReader(const Problem& problem, const JsonObject& file) : problem_(problem), file_(file) {
    const Graph& graph = problem.graph();
    old_.ops.resize(graph.ops().size());
    old_.variables.resize(graph.variables().size());
    old_.start_ns.resize(graph.ops().size());
  }

  OldPlan read() {
    std::vector<JsonObject> devices;
    bool is_any_known = false;
    for (const json::value& item : file_.array("devices")) {
      devices.emplace_back(item, file_.source(), "devices[" + std::to_string(devices.size()) + "]");
      is_any_known |= problem_.machine().find(devices.back().text("device")).has_value();
    }
    for (std::size_t n = 0; n < devices.size(); ++n) {
      std::optional<DeviceId> device = problem_.machine().find(devices[n].text("device"));
      if (!is_any_known && n < problem_.device_count()) {
        device = DeviceId{static_cast<std::uint32_t>(n)};
      }
      read_device(devices[n], device);
    }
    if (matched_ == 0 && old_.op_count > 0) {
      file_.fail("devices",
                 "none of the keys of its " + std::to_string(old_.op_count) + " ops in the graph",
                 "a plan of this graph or of one like it");
    }
    old_.is_of_this_problem =
        stated_problem(problem_) ==
        json::serialize(json::array{file_.at("graph"), file_.at("rules"), file_.at("machine")});
    return std::move(old_);
  }

 private:
  void read_device(const JsonObject& object, std::optional<DeviceId> device) {
    const Graph& graph = problem_.graph();
    const json::array& ops = object.array("sequence");
    const json::array& starts = object.array("starts_ns");
    if (starts.size() != ops.size()) {
      object.fail("starts_ns", std::to_string(starts.size()) + " numbers",
                  std::to_string(ops.size()) + ", one per op of the sequence");
    }
    old_.op_count += ops.size();
    for (std::size_t n = 0; n < ops.size(); ++n) {
      const auto op = graph.find_op(text_of(object, "sequence", ops[n]));
      if (!starts[n].is_int64() || starts[n].get_int64() < 0) {
        object.fail("starts_ns", describe(starts[n]), "times");
      }
      if (!op || graph.is_every(*op)) continue;
      if (old_.start_ns[*op]) object.fail("sequence", describe(ops[n]) + " again", "it once");
      ++matched_;
      old_.ops[*op] = device;
      old_.start_ns[*op] = std::min(starts[n].get_int64(), kMaxQuantity);
    }
    for (const json::value& item : object.array("variables")) {
      const auto variable = graph.find_variable(text_of(object, "variables", item));
      if (variable) old_.variables[*variable] = device;
    }
  }

  const Problem& problem_;
  const JsonObject& file_;
  OldPlan old_;
  std::size_t matched_ = 0;
};

}  // namespace

OldPlan read_old_plan(std::string_view text, std::string_view source, const Problem& problem) {
  const json::value value = parse_json(text, source);
  const JsonObject file(value, source, "");
  file.expect_version("pardnn_plan", kPlanVersion);
  return OldPlanReader(problem, file).read();
}

}  // namespace pardnn
