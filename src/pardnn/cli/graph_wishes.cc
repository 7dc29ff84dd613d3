#include "pardnn/cli/graph_wishes.h"

#define BOOST_REGEX_STANDALONE
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <boost/regex.hpp>

#include "pardnn/graph/builder.h"
#include "pardnn/graph/copy.h"
#include "pardnn/cli/options.h"

namespace pardnn::cli {

namespace {

boost::regex expression(std::string_view option, const std::string& text) {
  try {
    return boost::regex(text);
  } catch (const boost::regex_error& error) {
    reject(option, text, std::string("a regular expression (") + error.what() + ")");
  }
}

std::vector<OpId> matching(const Graph& graph, std::string_view option, const std::string& text) {
  const boost::regex wanted = expression(option, text);
  std::vector<OpId> ops;
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    const auto& name = graph.notes(op).name;
    const std::string shown = name ? *name : std::string(graph.key(op));
    if (boost::regex_search(shown, wanted)) ops.push_back(op);
  }
  if (ops.empty()) reject(option, text, "an expression that some op's name has a match for");
  return ops;
}

// Groups that become one, by the number of the wish that asked first.
class Mergers {
 public:
  explicit Mergers(const Graph& graph)
      : graph_(graph), group_of_op_(graph.ops().size()), merged_(graph.groups().size()) {}

  void merge(const std::vector<OpId>& ops, const std::string& name) {
    for (const OpId op : ops) {
      const auto known = name_of(op);
      if (known) rename(*known, name);
      if (const auto group = graph_.group(op)) {
        merged_[*group] = name;
      } else {
        group_of_op_[op] = name;
      }
    }
  }
  // The new name of the group of an op that a wish reached.
  std::optional<std::string> name_of(OpId op) const {
    const auto group = graph_.group(op);
    return group ? merged_[*group] : group_of_op_[op];
  }
  const std::optional<std::string>& name_of(GroupId group) const { return merged_[group]; }

 private:
  void rename(const std::string& from, const std::string& to) {
    for (auto& name : merged_) {
      if (name == from) name = to;
    }
    for (auto& name : group_of_op_) {
      if (name == from) name = to;
    }
  }
  const Graph& graph_;
  Table<OpId, std::optional<std::string>> group_of_op_;
  Table<GroupId, std::optional<std::string>> merged_;
};

// Pins of several groups cannot be one list, since a list means any of its names: each member
// keeps those of the group that it was in.
Pins pins_of_member(const Pins& own, const Pins& group) { return own.on.empty() ? group : own; }

std::string unused_group_name(const Graph& graph, std::size_t number) {
  std::string name = "wish" + std::to_string(number);
  while (graph.find_group(name)) name += "_";
  return name;
}

}  // namespace

std::shared_ptr<const Graph> with_wishes(
    const Graph& graph, const std::vector<std::pair<std::string, std::string>>& pins,
    const std::vector<std::string>& groups) {
  Mergers mergers(graph);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    mergers.merge(matching(graph, "--group", groups[i]), unused_group_name(graph, i));
  }
  std::map<OpId, std::string> pinned;
  for (const auto& [text, device] : pins) {
    for (const OpId op : matching(graph, "--pin", text)) pinned[op] = device;
  }

  GraphBuilder builder;
  copy_head(graph, builder);
  for (const GroupId group : graph.groups()) {
    if (!mergers.name_of(group)) builder.group(graph.name(group), graph.pins(group));
  }
  for (const VariableId variable : graph.variables()) {
    VariableSpec spec = spec_of(graph, variable);
    const auto group = graph.group(variable);
    if (group && mergers.name_of(*group)) {
      spec.pins = pins_of_member(spec.pins, graph.pins(*group));
      spec.group = *mergers.name_of(*group);
    }
    builder.variable(spec);
  }
  for (const OpId op : graph.ops()) {
    OpSpec spec = spec_of(graph, op);
    const auto name = mergers.name_of(op);
    if (name) {
      if (const auto group = graph.group(op)) {
        spec.pins = pins_of_member(spec.pins, graph.pins(*group));
      }
      spec.group = *name;
    }
    const auto pin = pinned.find(op);
    if (pin != pinned.end()) spec.pins.on = {pin->second};
    builder.op(spec);
  }
  return builder.build();
}

}  // namespace pardnn::cli
