#include "pardnn/graph/graph.h"

#include <algorithm>

namespace pardnn {
namespace {

// The row of an id in a list that is ascending and leaves most ids out; an empty value for those.
template <class Id, class Value>
const Value& find_or_empty(const std::vector<std::pair<Id, Value>>& rows, Id id) {
  static const Value empty{};
  const auto at = std::ranges::lower_bound(rows, id, {}, &std::pair<Id, Value>::first);
  return at == rows.end() || at->first != id ? empty : at->second;
}

}  // namespace

std::optional<OpId> Graph::find_op(std::string_view key) const {
  const auto number = keys_->find(key);
  return number ? op_of_key_[*number] : std::nullopt;
}

std::optional<VariableId> Graph::find_variable(std::string_view key) const {
  const auto& rows = variables_.rows();
  const auto at = std::ranges::lower_bound(rows, key, {}, &VariableRow::key);
  if (at == rows.end() || at->key != key) return std::nullopt;
  return VariableId{static_cast<std::uint32_t>(at - rows.begin())};
}

std::optional<GroupId> Graph::find_group(std::string_view name) const {
  const auto& rows = groups_.rows();
  const auto at = std::ranges::lower_bound(rows, name, {}, &GroupRow::name);
  if (at == rows.end() || at->name != name) return std::nullopt;
  return GroupId{static_cast<std::uint32_t>(at - rows.begin())};
}

std::optional<KindId> Graph::find_kind(std::string_view name) const {
  const auto at = std::ranges::find(kinds_.rows(), name);
  if (at == kinds_.end()) return std::nullopt;
  return KindId{static_cast<std::uint32_t>(at - kinds_.begin())};
}

const Pins& Graph::pins(OpId op) const { return find_or_empty(op_pins_, op); }

const Notes& Graph::notes(OpId op) const { return find_or_empty(op_notes_, op); }

const Pins& Graph::pins(VariableId variable) const {
  return find_or_empty(variable_pins_, variable);
}

const Notes& Graph::notes(VariableId variable) const {
  return find_or_empty(variable_notes_, variable);
}

}  // namespace pardnn
