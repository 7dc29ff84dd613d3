#include "pardnn/problem/unknowns.h"

#include <string>

#include "pardnn/base/error.h"
#include "pardnn/base/text.h"

namespace pardnn {
namespace {

constexpr std::size_t kNamed = 5;

// A list of things that a message names the first few of.
class FirstFew {
 public:
  void add(std::string name, std::uint32_t line) {
    if (++count_ > kNamed) return;
    if (line != 0) name += " (line " + std::to_string(line) + ")";
    names_ += (names_.empty() ? "" : ", ") + name;
  }
  std::size_t count() const { return count_; }
  std::string text() const {
    if (count_ <= kNamed) return names_;
    return names_ + " and " + std::to_string(count_ - kNamed) + " more";
  }

 private:
  std::size_t count_ = 0;
  std::string names_;
};

void check_costs(const Graph& graph, KindId kind) {
  FirstFew unknown;
  for (OpId op : graph.ops()) {
    const Cost cost = graph.cost(op, kind);
    if (graph.is_every(op) || cost.is_known() || !cost.is_allowed()) continue;
    unknown.add(quoted(graph.key(op)), graph.line(op));
  }
  if (unknown.count() == 0) return;
  throw Error("graph: found " + std::to_string(unknown.count()) + " ops of unknown cost on kind " +
              quoted(graph.name(kind)) + ": " + unknown.text() +
              "; expected a time for each, or - where the op must not run");
}

}  // namespace

void check_known(const Graph& graph, const std::vector<std::optional<KindId>>& kinds) {
  for (const std::optional<KindId>& kind : kinds) {
    if (kind) check_costs(graph, *kind);
  }
  FirstFew unknown;
  for (VariableId variable : graph.variables()) {
    if (!graph.bytes(variable)) unknown.add("variable " + quoted(graph.key(variable)), 0);
  }
  for (TensorId tensor : graph.tensors()) {
    if (graph.tensor(tensor).bytes) continue;
    const OpId producer = graph.tensor(tensor).producer;
    unknown.add("output " + std::to_string(graph.tensor(tensor).number) + " of " +
                    quoted(graph.key(producer)),
                graph.line(producer));
  }
  if (unknown.count() == 0) return;
  throw Error("graph: found " + std::to_string(unknown.count()) +
              " unknown sizes: " + unknown.text() + "; expected bytes for each");
}

}  // namespace pardnn
