#include "pardnn/report/graph_info.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "pardnn/base/quantity.h"
#include "pardnn/report/text_table.h"

namespace pardnn {

namespace json = boost::json;

namespace {

constexpr std::size_t kShownTypes = 10, kShownUnknowns = 5;

struct TypeRow {
  std::int64_t ops = 0, work_ns = 0, output_bytes = 0;
};

struct KindRow {
  std::int64_t work_ns = 0, path_ns = 0;  // of the ops whose cost there is known
  std::int64_t not_allowed = 0, unknown = 0;
};

struct Info {
  std::int64_t every_ops = 0, edges = 0, control_edges = 0, aliases = 0, in_place = 0, pinned = 0;
  std::int64_t output_bytes = 0, variable_bytes = 0, workspace_bytes = 0;
  std::vector<std::string> unknown_costs, unknown_sizes;  // keys
  Table<KindId, KindRow> kinds;
  std::map<std::string, TypeRow, std::less<>> types;
};

// The most that a path of ops takes on one kind: time of the longest chain, transfers not counted.
std::int64_t longest_path_ns(const Graph& graph, KindId kind) {
  Table<OpId, std::int64_t> finish(graph.ops().size(), 0);
  std::int64_t longest = 0;
  for (const OpId op : graph.ops()) {
    std::int64_t start = 0;
    for (const OpId before : graph.controls(op)) start = std::max(start, finish[before]);
    for (const Input& input : graph.inputs(op)) {
      if (input.is_variable()) continue;
      start = std::max(start, finish[graph.tensor(input.tensor()).producer]);
    }
    const Cost cost = graph.cost(op, kind);
    finish[op] = start + (cost.is_known() ? cost.ns() : 0);
    longest = std::max(longest, finish[op]);
  }
  return longest;
}

void count_op(Info& info, const Graph& graph, OpId op) {
  TypeRow& type = info.types[std::string(graph.type(op))];
  ++type.ops;
  info.every_ops += graph.is_every(op);
  info.control_edges += static_cast<std::int64_t>(graph.controls(op).size());
  info.workspace_bytes = std::max(info.workspace_bytes, graph.workspace_bytes(op));
  info.pinned += !graph.pins(op).empty();
  for (const Input& input : graph.inputs(op)) {
    info.edges += !input.is_variable();
    info.in_place += input.modifies();
  }
  bool is_unknown = false;
  for (const KindId kind : graph.kinds()) {
    const Cost cost = graph.cost(op, kind);
    KindRow& row = info.kinds[kind];
    if (cost.is_known()) {
      row.work_ns += cost.ns();
      if (kind == KindId{0}) type.work_ns += cost.ns();
    } else {
      ++(cost.is_allowed() ? row.unknown : row.not_allowed);
      is_unknown = is_unknown || cost.is_allowed();
    }
  }
  if (is_unknown && !graph.is_every(op)) info.unknown_costs.emplace_back(graph.key(op));
  for (const TensorId output : graph.outputs(op)) {
    const Tensor& tensor = graph.tensor(output);
    info.aliases += tensor.alias_of.has_value();
    if (!tensor.bytes) {
      info.unknown_sizes.push_back(std::string(graph.key(op)) + ":" +
                                   std::to_string(tensor.number));
    } else if (!tensor.alias_of) {
      info.output_bytes += *tensor.bytes;
      type.output_bytes += *tensor.bytes;
    }
  }
}

Info collect(const Graph& graph) {
  Info info;
  info.kinds.resize(graph.kinds().size());
  for (const OpId op : graph.ops()) count_op(info, graph, op);
  for (const KindId kind : graph.kinds()) info.kinds[kind].path_ns = longest_path_ns(graph, kind);
  for (const VariableId variable : graph.variables()) {
    if (const auto bytes = graph.bytes(variable)) {
      info.variable_bytes += *bytes;
    } else {
      info.unknown_sizes.emplace_back(graph.key(variable));
    }
  }
  return info;
}

std::string first_few(const std::vector<std::string>& keys) {
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kShownUnknowns); ++i) {
    text += (i == 0 ? "" : ", ") + keys[i];
  }
  return text + (keys.size() > kShownUnknowns ? ", ..." : "");
}

std::vector<std::pair<std::string, TypeRow>> types_by_work(const Info& info) {
  std::vector<std::pair<std::string, TypeRow>> types(info.types.begin(), info.types.end());
  std::stable_sort(types.begin(), types.end(), [](const auto& a, const auto& b) {
    return a.second.work_ns > b.second.work_ns;
  });
  return types;
}

std::string counts_text(const Graph& graph, const Info& info) {
  const auto line = [](const char* what, const std::string& value) {
    std::string head(what);
    head.resize(14, ' ');
    return head + value + "\n";
  };
  const auto count = [](std::size_t number) { return std::to_string(number); };
  return line("ops", count(graph.ops().size()) + ", of which " + std::to_string(info.every_ops) +
                         " constant (every), " + std::to_string(info.in_place) + " in place, " +
                         std::to_string(info.pinned) + " pinned") +
         line("tensors", count(graph.tensors().size()) + ", of which " +
                             std::to_string(info.aliases) + " aliases; " +
                             format_bytes(info.output_bytes) + " of outputs") +
         line("edges", std::to_string(info.edges) + " data, " + std::to_string(info.control_edges) +
                           " control") +
         line("variables",
              count(graph.variables().size()) + ", " + format_bytes(info.variable_bytes)) +
         line("groups", count(graph.groups().size())) +
         line("workspace", "at most " + format_bytes(info.workspace_bytes) + " of one op");
}

}  // namespace

std::string graph_info_text(const Graph& graph, const std::string& hash) {
  const Info info = collect(graph);
  std::string text = counts_text(graph, info);
  for (const auto& [key, value] : graph.about()) {
    std::string head = key;
    head.resize(std::max<std::size_t>(14, key.size() + 1), ' ');
    text += head + value + "\n";
  }
  text += "hash          " + hash + "\n\n";
  TextTable kinds({"kind", "work", "longest path", "not allowed", "unknown cost"});
  for (const KindId kind : graph.kinds()) {
    const KindRow& row = info.kinds[kind];
    kinds.add({std::string(graph.name(kind)), format_ns(row.work_ns), format_ns(row.path_ns),
               std::to_string(row.not_allowed), std::to_string(row.unknown)});
  }
  text += kinds.text() + "\n";
  TextTable types({"type", "ops", "work", "output"});
  const auto sorted = types_by_work(info);
  for (std::size_t i = 0; i < std::min(sorted.size(), kShownTypes); ++i) {
    types.add({sorted[i].first, std::to_string(sorted[i].second.ops),
               format_ns(sorted[i].second.work_ns), format_bytes(sorted[i].second.output_bytes)});
  }
  text += types.text();
  if (sorted.size() > kShownTypes) {
    text += "and " + std::to_string(sorted.size() - kShownTypes) + " more types\n";
  }
  if (!info.unknown_costs.empty()) {
    text += "\nunknown cost of " + std::to_string(info.unknown_costs.size()) +
            " ops: " + first_few(info.unknown_costs) + "\n";
  }
  if (!info.unknown_sizes.empty()) {
    text += "\nunknown size of " + std::to_string(info.unknown_sizes.size()) +
            " tensors or variables: " + first_few(info.unknown_sizes) + "\n";
  }
  return text;
}

std::string graph_info_json(const Graph& graph, const std::string& hash) {
  const Info info = collect(graph);
  json::object text{{"hash", hash},
                    {"ops", graph.ops().size()},
                    {"every_ops", info.every_ops},
                    {"tensors", graph.tensors().size()},
                    {"aliases", info.aliases},
                    {"edges", info.edges},
                    {"control_edges", info.control_edges},
                    {"variables", graph.variables().size()},
                    {"variable_bytes", info.variable_bytes},
                    {"output_bytes", info.output_bytes},
                    {"groups", graph.groups().size()},
                    {"largest_workspace_bytes", info.workspace_bytes},
                    {"unknown_costs", info.unknown_costs.size()},
                    {"unknown_sizes", info.unknown_sizes.size()}};
  json::object about;
  for (const auto& [key, value] : graph.about()) about[key] = value;
  text["about"] = std::move(about);
  json::array kinds;
  for (const KindId kind : graph.kinds()) {
    const KindRow& row = info.kinds[kind];
    kinds.push_back({{"kind", json::string(graph.name(kind))},
                     {"work_ns", row.work_ns},
                     {"longest_path_ns", row.path_ns},
                     {"not_allowed", row.not_allowed},
                     {"unknown", row.unknown}});
  }
  text["kinds"] = std::move(kinds);
  json::array types;
  for (const auto& [name, row] : types_by_work(info)) {
    types.push_back({{"type", name},
                     {"ops", row.ops},
                     {"work_ns", row.work_ns},
                     {"output_bytes", row.output_bytes}});
  }
  text["types"] = std::move(types);
  return json::serialize(text) + "\n";
}

}  // namespace pardnn
