#include "pardnn/problem/in_place.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pardnn/base/text.h"
#include "pardnn/problem/reachability.h"

namespace pardnn {
namespace {

// Paths are asked for between neighbours only. Let u1 < u2 < ... be the ops that modify a buffer,
// by id. They must form a chain: each reads or touches the buffer before the next does. So an op
// that has a path to one of them has a path to all that follow, and the first one after the
// tensor was made is the only one to ask about: one or two questions for each (op, tensor).
//
// "Made before u" is decided by ids. A tensor whose producer has no path to or from u can have
// the lower id, too, but then an op of its alias chain is out of order with u and is refused.
class InPlaceCheck {
 public:
  explicit InPlaceCheck(const Graph& graph) : graph_(graph), reachability_(graph) {}

  void buffer_of(TensorId tensor, const std::vector<OpId>& modifiers) {
    check_tensors({tensor}, modifiers);
  }

  void buffer_of(VariableId variable, const std::vector<OpId>& modifiers) {
    std::vector<TensorId> aliases;
    for (OpId op : graph_.touchers(variable)) {
      check_toucher(op, variable, modifiers);
      add_aliases(
          op,
          [&](const Input& input) { return input.is_variable() && input.variable() == variable; },
          aliases);
    }
    check_tensors(std::move(aliases), modifiers);
  }

 private:
  // Outputs of `op` that are aliases of an input of which `is_alias_of` says yes.
  template <class Predicate>
  void add_aliases(OpId op, Predicate is_alias_of, std::vector<TensorId>& aliases) {
    for (TensorId output : graph_.outputs(op)) {
      const auto input = graph_.tensor(output).alias_of;
      if (input && is_alias_of(graph_.inputs(op)[*input])) aliases.push_back(output);
    }
  }

  void check_tensors(std::vector<TensorId> open, const std::vector<OpId>& modifiers) {
    while (!open.empty()) {
      const TensorId tensor = open.back();
      open.pop_back();
      for (OpId reader : graph_.readers(tensor)) {
        check_reader(reader, tensor, modifiers);
        add_aliases(
            reader,
            [&](const Input& input) { return !input.is_variable() && input.tensor() == tensor; },
            open);
      }
    }
  }

  void check_reader(OpId reader, TensorId tensor, const std::vector<OpId>& modifiers) {
    const OpId producer = graph_.tensor(tensor).producer;
    auto later = std::upper_bound(modifiers.begin(), modifiers.end(), producer);
    if (later != modifiers.end() && *later == reader) ++later;
    if (later == modifiers.end() || reachability_.path(reader, *later)) return;
    refuse(reader, *later,
           "output " + std::to_string(graph_.tensor(tensor).number) + " of " + name(producer),
           "a path from op " + name(reader) + " to op " + name(*later));
  }

  void check_toucher(OpId op, VariableId variable, const std::vector<OpId>& modifiers) {
    const auto at = std::lower_bound(modifiers.begin(), modifiers.end(), op);
    if (at != modifiers.begin() && !reachability_.path(*(at - 1), op)) {
      refuse(op, *(at - 1), quoted(graph_.key(variable)), "a path from one of them to the other");
    }
    const auto later = at != modifiers.end() && *at == op ? at + 1 : at;
    if (later != modifiers.end() && !reachability_.path(op, *later)) {
      refuse(op, *later, quoted(graph_.key(variable)), "a path from one of them to the other");
    }
  }

  std::string name(OpId op) const { return quoted(graph_.key(op)); }

  [[noreturn]] void refuse(OpId op, OpId modifier, const std::string& what,
                           const std::string& expected) const {
    const auto place = [&](OpId o) {
      const std::uint32_t line = graph_.line(o);
      return line == 0 ? name(o) : name(o) + " (line " + std::to_string(line) + ")";
    };
    throw Error("op " + place(op) + " uses " + what + ", whose buffer op " + place(modifier) +
                " modifies: found no order between them, expected " + expected);
  }

  const Graph& graph_;
  Reachability reachability_;
};

}  // namespace

void check_in_place(const Graph& graph) {
  std::vector<std::pair<TensorId, OpId>> of_tensor;
  std::vector<std::pair<VariableId, OpId>> of_variable;
  for (OpId op : graph.ops()) {
    for (const Input& input : graph.inputs(op)) {
      if (!input.modifies()) continue;
      const Origin origin = input.is_variable() ? Origin{.tensor = {}, .variable = input.variable()}
                                                : graph.origin(input.tensor());
      if (origin.variable) of_variable.emplace_back(*origin.variable, op);
      if (origin.tensor) of_tensor.emplace_back(*origin.tensor, op);
    }
  }
  if (of_tensor.empty() && of_variable.empty()) return;
  InPlaceCheck check(graph);
  const auto check_each = [&](auto& pairs) {
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::vector<OpId> modifiers;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      modifiers.push_back(pairs[i].second);
      if (i + 1 < pairs.size() && pairs[i + 1].first == pairs[i].first) continue;
      check.buffer_of(pairs[i].first, modifiers);
      modifiers.clear();
    }
  };
  check_each(of_tensor);
  check_each(of_variable);
}

}  // namespace pardnn
