#include "pardnn/graph/rules.h"

#include <algorithm>
#include <string>

#include "pardnn/base/integers.h"
#include "pardnn/base/text.h"

namespace pardnn {
namespace {

class RuleCheck {
 public:
  RuleCheck(const Graph& graph, const GraphDraft& draft, const std::vector<std::uint32_t>& order)
      : graph_(graph), draft_(draft), order_(order) {}

  void run() {
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) {
        check_every(op);
      } else {
        check_variables(op);
      }
    }
    check_modified_buffers();
    check_given_order();
    check_sums();
  }

 private:
  const GraphDraft::OpRecord& record(OpId op) const { return draft_.ops[order_[index(op)]]; }
  std::string name(OpId op) const { return "op " + quoted(graph_.key(op)); }
  std::string name(VariableId variable) const { return "variable " + quoted(graph_.key(variable)); }
  std::string of_group(std::optional<GroupId> group) const {
    return group ? " of group " + quoted(graph_.name(*group)) : " of no group";
  }

  [[noreturn]] void refuse(OpId op, const std::string& found, const std::string& expected) const {
    draft_.refuse(record(op).place, found, expected);
  }
  // The same at one of the op's data inputs.
  [[noreturn]] void refuse_input(OpId op, std::size_t number, const std::string& found,
                                 const std::string& expected) const {
    for (const GraphDraft::InputRecord& input : draft_.inputs_of(record(op))) {
      if (!input.control && number-- == 0) {
        draft_.refuse({record(op).place.line, input.column}, found, expected);
      }
    }
    PARDNN_CHECK(false);
    refuse(op, found, expected);
  }

  // X1: `every` ops are outside all sequences and devices.
  void check_every(OpId op) const {
    const auto refuse_attribute = [&](const char* what) {
      refuse(op, std::string(what) + " of every " + name(op), "none on an op of every device");
    };
    if (graph_.workspace_bytes(op) > 0) refuse_attribute("workspace");
    if (graph_.group(op)) refuse_attribute("a group");
    if (!graph_.pins(op).empty()) refuse_attribute("a pin");
    if (graph_.at(op)) refuse_attribute("a place in the given order");
    const auto inputs = graph_.inputs(op);
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      if (inputs[n].is_variable()) {
        refuse_input(op, n, name(inputs[n].variable()) + " as an input of every " + name(op),
                     "outputs of every ops only");
      }
      const OpId producer = graph_.tensor(inputs[n].tensor()).producer;
      if (!graph_.is_every(producer)) {
        refuse_input(op, n, name(producer) + " as an input of every " + name(op),
                     "outputs of every ops only");
      }
    }
    if (!graph_.controls(op).empty()) {
      refuse(op, "a control edge from " + name(graph_.controls(op)[0]) + " to every " + name(op),
             "control edges from every ops only");
    }
  }

  // V1, V2: only ops of its group touch a variable, and one of no group is touched by nothing.
  void check_variables(OpId op) const {
    const auto inputs = graph_.inputs(op);
    for (std::size_t n = 0; n < inputs.size(); ++n) {
      if (!inputs[n].is_variable()) continue;
      const VariableId variable = inputs[n].variable();
      const auto group = graph_.group(variable);
      if (group && group == graph_.group(op)) continue;
      refuse_input(
          op, n,
          name(op) + of_group(graph_.group(op)) + " touching " + name(variable) + of_group(group),
          "both in one group");
    }
  }

  // The one group that carries a buffer, its producer or variable and all alias ops down to a
  // tensor; nothing when there is no such group.
  std::optional<GroupId> group_behind(const Input& input) const {
    return input.is_variable() ? graph_.group(input.variable()) : groups_[input.tensor()];
  }

  // M4, the condition on groups. One sweep carries the group of a chain of aliases along, since
  // walking every chain to its end is quadratic for a chain of in-place ops.
  void check_modified_buffers() {
    groups_ = Table<TensorId, std::optional<GroupId>>(graph_.tensors().size());
    for (const OpId op : graph_.ops()) {
      const auto inputs = graph_.inputs(op);
      for (std::size_t n = 0; n < inputs.size(); ++n) {
        if (inputs[n].modifies()) check_modified(op, n, inputs[n]);
      }
      for (const TensorId tensor : graph_.outputs(op)) {
        const auto& alias_of = graph_.tensor(tensor).alias_of;
        const auto group = graph_.group(op);
        if (!alias_of || group_behind(inputs[*alias_of]) == group) groups_[tensor] = group;
      }
    }
  }

  void check_modified(OpId op, std::size_t number, const Input& input) const {
    if (!input.is_variable()) {
      const Origin origin = graph_.origin(input.tensor());
      if (origin.tensor && graph_.is_every(graph_.tensor(*origin.tensor).producer)) {
        refuse_input(op, number,
                     name(op) + " modifying the buffer of every " +
                         name(graph_.tensor(*origin.tensor).producer),
                     "a buffer that is made in the step");
      }
    }
    const auto group = graph_.group(op);
    if (group && group_behind(input) == group) return;
    if (!group) {
      refuse_input(op, number, name(op) + of_group(group) + " modifying an input",
                   "a group that it shares with what made the buffer");
    }
    // Walk the chain once, for the message.
    Input at = input;
    while (!at.is_variable()) {
      const Tensor& tensor = graph_.tensor(at.tensor());
      if (graph_.group(tensor.producer) != group || !tensor.alias_of) {
        refuse_input(op, number,
                     name(op) + of_group(group) + " modifying a buffer of " +
                         name(tensor.producer) + of_group(graph_.group(tensor.producer)),
                     "both in one group");
      }
      at = graph_.inputs(tensor.producer)[*tensor.alias_of];
    }
    PARDNN_CHECK(at.is_variable());
    refuse_input(op, number,
                 name(op) + of_group(group) + " modifying " + name(at.variable()) +
                     of_group(graph_.group(at.variable())),
                 "both in one group");
  }

  // D4b: `at` is given for all ordinary ops or none, once each, producers before readers.
  void check_given_order() const {
    if (!graph_.has_given_order()) return;
    std::vector<std::pair<std::int64_t, OpId>> by_place;
    for (const OpId op : graph_.ops()) {
      if (graph_.is_every(op)) continue;
      if (!graph_.at(op)) {
        refuse(op, name(op) + " without at", "at for every ordinary op, as others have it");
      }
      by_place.emplace_back(*graph_.at(op), op);
      for (const Input& input : graph_.inputs(op)) {
        if (!input.is_variable()) check_before(graph_.tensor(input.tensor()).producer, op);
      }
      for (const OpId before : graph_.controls(op)) check_before(before, op);
    }
    std::ranges::sort(by_place);
    const auto same =
        std::ranges::adjacent_find(by_place, {}, [](const auto& row) { return row.first; });
    if (same == by_place.end()) return;
    refuse((same + 1)->second,
           "at=" + std::to_string(same->first) + " of " + name(same->second) + " and of " +
               name((same + 1)->second),
           "a place of its own for each op");
  }

  void check_before(OpId producer, OpId reader) const {
    if (graph_.is_every(producer) || !graph_.at(producer)) return;
    if (*graph_.at(producer) < *graph_.at(reader)) return;
    refuse(reader,
           name(reader) + " at " + std::to_string(*graph_.at(reader)) + ", which waits for " +
               name(producer) + " at " + std::to_string(*graph_.at(producer)),
           "producers before their readers");
  }

  void add(std::int64_t& sum, std::optional<std::int64_t> value, OpId op, const char* what) const {
    const auto more = checked_add(sum, value.value_or(0));
    if (!more || *more > kMaxQuantity) {
      refuse(op, std::string(what) + " that sum to 2^62 or more at " + name(op), "sums below 2^62");
    }
    sum = *more;
  }

  // Every sum that is ever formed of one device's step is a part of these.
  void check_sums() const {
    std::int64_t ns = 0, bytes = 0, flops = 0, moved_bytes = 0;
    for (const VariableId variable : graph_.variables()) {
      const auto more = checked_add(bytes, graph_.bytes(variable).value_or(0));
      if (!more || *more > kMaxQuantity) {
        draft_.refuse({}, "variables whose sizes sum to 2^62 or more", "sums below 2^62");
      }
      bytes = *more;
    }
    for (const OpId op : graph_.ops()) {
      std::int64_t longest_ns = 1;
      for (const KindId kind : graph_.kinds()) {
        const Cost cost = graph_.cost(op, kind);
        if (cost.is_known()) longest_ns = std::max(longest_ns, cost.ns());
      }
      add(ns, longest_ns, op, "costs");
      for (const TensorId tensor : graph_.outputs(op)) {
        add(bytes, graph_.tensor(tensor).bytes, op, "sizes");
      }
      add(bytes, graph_.workspace_bytes(op), op, "sizes");
      add(flops, graph_.flops(op), op, "flops");
      add(moved_bytes, graph_.moved_bytes(op), op, "moved bytes");
    }
  }

  const Graph& graph_;
  const GraphDraft& draft_;
  const std::vector<std::uint32_t>& order_;
  Table<TensorId, std::optional<GroupId>> groups_;  // see group_behind
};

}  // namespace

void check_rules(const Graph& graph, const GraphDraft& draft,
                 const std::vector<std::uint32_t>& order) {
  RuleCheck(graph, draft, order).run();
}

}  // namespace pardnn
