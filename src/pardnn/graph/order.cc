#include "pardnn/graph/order.h"

#include <algorithm>
#include <queue>

#include "pardnn/base/text.h"

namespace pardnn {
namespace {

using InputRecord = GraphDraft::InputRecord;
using OpRecord = GraphDraft::OpRecord;
using Meaning = GraphDraft::Meaning;

constexpr std::size_t kMostKeysShown = 12;  // of a cycle

void check_input(const GraphDraft& draft, const OpRecord& op, const InputRecord& input) {
  const Meaning& meaning = draft.meanings[input.symbol];
  const std::string key = quoted((*draft.keys)[input.symbol]);
  const std::string reader = " of op " + quoted(draft.key(op));
  const SourcePlace place{op.place.line, input.column};
  if (meaning.what == Meaning::What::kUnknown) {
    draft.refuse(place, (input.control ? "control edge ^" : "input ") + key + reader,
                 input.control ? "the key of an op" : "the key of an op or a variable");
  }
  if (input.control) {
    draft.refuse(place, "control edge ^" + key + reader + " from a variable", "the key of an op");
  }
  const std::string found = "output " + std::to_string(input.output) + " of ";
  if (meaning.what == Meaning::What::kVariable) {
    draft.refuse(place, found + "variable " + key + " as an input" + reader, "the variable itself");
  }
  const std::uint32_t count = draft.ops[meaning.position].output_count;
  draft.refuse(place, found + "op " + key + " as an input" + reader,
               count == 0 ? "an op that has outputs" : "at most " + std::to_string(count - 1));
}

bool exists(const GraphDraft& draft, const InputRecord& input) {
  const Meaning& meaning = draft.meanings[input.symbol];
  if (meaning.what == Meaning::What::kVariable) return !input.control && input.output == 0;
  return meaning.what == Meaning::What::kOp &&
         (input.control || input.output < draft.ops[meaning.position].output_count);
}

// The record that an input makes its op wait for; nothing for variables and void control edges.
std::optional<std::uint32_t> awaited(const GraphDraft& draft, const InputRecord& input) {
  const Meaning& meaning = draft.meanings[input.symbol];
  if (meaning.what != Meaning::What::kOp) return std::nullopt;
  if (input.control && draft.ops[meaning.position].every) return std::nullopt;
  return meaning.position;
}

// Of the ops that still wait when no op is ready, follows the least-named one that each waits for
// until one comes again. The walk is a loop, not a recursion: a cycle can be as long as the graph.
[[noreturn]] void refuse_cycle(const GraphDraft& draft, const std::vector<std::uint32_t>& waits) {
  const auto key = [&](std::uint32_t record) { return draft.key(draft.ops[record]); };
  std::vector<bool> seen(draft.ops.size());
  std::vector<std::uint32_t> path;
  std::optional<std::uint32_t> at;
  for (std::uint32_t record = 0; record < draft.ops.size(); ++record) {
    if (waits[record] > 0 && (!at || key(record) < key(*at))) at = record;
  }
  while (!seen[*at]) {
    seen[*at] = true;
    path.push_back(*at);
    std::optional<std::uint32_t> before;
    for (const InputRecord& input : draft.inputs_of(draft.ops[*at])) {
      const auto record = awaited(draft, input);
      if (!record || waits[*record] == 0) continue;
      if (!before || key(*record) < key(*before)) before = record;
    }
    at = before;
  }
  // The path runs against the edges; what lies before the op met again is no part of the cycle.
  path.erase(path.begin(), std::ranges::find(path, *at));
  std::ranges::reverse(path);
  std::rotate(path.begin(), std::ranges::min_element(path, {}, key), path.end());
  std::string found = "a cycle";
  for (std::size_t n = 0; n < path.size() && n < kMostKeysShown; ++n) {
    found += (n == 0 ? " " : " -> ") + quoted(key(path[n]));
  }
  if (path.size() > kMostKeysShown) {
    found += " -> … (" + std::to_string(path.size() - kMostKeysShown) + " more ops)";
  }
  draft.refuse(draft.ops[path[0]].place, found + " -> " + quoted(key(path[0])),
               "ops that do not wait for themselves");
}

// For every record the records that wait for it, in one flat array.
struct Successors {
  std::vector<std::uint32_t> first, records;
};

Successors successors(const GraphDraft& draft, std::vector<std::uint32_t>& waits) {
  Successors result;
  result.first.assign(draft.ops.size() + 1, 0);
  for (std::uint32_t record = 0; record < draft.ops.size(); ++record) {
    for (const InputRecord& input : draft.inputs_of(draft.ops[record])) {
      if (!exists(draft, input)) check_input(draft, draft.ops[record], input);
      if (const auto before = awaited(draft, input)) {
        ++result.first[*before];
        ++waits[record];
      }
    }
  }
  std::uint32_t sum = 0;
  for (std::uint32_t& first : result.first) first = sum += first;
  result.records.resize(sum);
  // Filled from behind, so that `first` ends as the beginning of each list.
  for (std::uint32_t record = 0; record < draft.ops.size(); ++record) {
    for (const InputRecord& input : draft.inputs_of(draft.ops[record])) {
      if (const auto before = awaited(draft, input)) {
        result.records[--result.first[*before]] = record;
      }
    }
  }
  return result;
}

}  // namespace

// Kahn's algorithm with a heap of the ready ops, O((n + m) + n log n) looks at keys.
std::vector<std::uint32_t> topological_order(const GraphDraft& draft) {
  std::vector<std::uint32_t> waits(draft.ops.size(), 0);
  const Successors after = successors(draft, waits);

  struct Ready {
    std::string_view key;
    std::uint32_t record;
    bool operator<(const Ready& other) const { return key > other.key; }
  };
  std::priority_queue<Ready> ready;
  const auto add = [&](std::uint32_t record) {
    ready.push({draft.key(draft.ops[record]), record});
  };
  for (std::uint32_t record = 0; record < draft.ops.size(); ++record) {
    if (waits[record] == 0) add(record);
  }
  std::vector<std::uint32_t> order;
  order.reserve(draft.ops.size());
  while (!ready.empty()) {
    const std::uint32_t record = ready.top().record;
    ready.pop();
    order.push_back(record);
    for (std::uint32_t at = after.first[record]; at < after.first[record + 1]; ++at) {
      if (--waits[after.records[at]] == 0) add(after.records[at]);
    }
  }
  if (order.size() < draft.ops.size()) refuse_cycle(draft, waits);
  return order;
}

}  // namespace pardnn
