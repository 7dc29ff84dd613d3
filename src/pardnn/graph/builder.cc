#include "pardnn/graph/builder.h"

#include <algorithm>
#include <span>

#include "pardnn/base/error.h"
#include "pardnn/base/integers.h"
#include "pardnn/base/text.h"
#include "pardnn/graph/assemble.h"
#include "pardnn/graph/draft.h"
#include "pardnn/graph/order.h"
#include "pardnn/graph/rules.h"

namespace pardnn {
namespace {

constexpr std::size_t kMostOps = std::size_t{1} << 31;  // and variables
constexpr std::size_t kMostTensors = (std::size_t{1} << 32) - 1;

using Meaning = GraphDraft::Meaning;

// Checks what is asked of keys and names alike.
void check_text(const GraphDraft& draft, std::string_view text, const char* what,
                SourcePlace place) {
  if (text.empty()) draft.refuse(place, std::string("an empty ") + what, "at least one character");
  if (first_not_utf8(text)) {
    draft.refuse(place, std::string(what) + ' ' + quoted(text), "UTF-8 text");
  }
}

// Looks before it adds, so that a text which is refused leaves no trace.
std::uint32_t symbol_of(GraphDraft& draft, std::string_view key, std::uint32_t hash,
                        const char* what, SourcePlace place) {
  if (const auto known = draft.keys->find(key, hash)) return *known;
  check_text(draft, key, what, place);
  draft.meanings.emplace_back();
  return draft.keys->add(key, hash);
}

// The symbols of inputs are anywhere in memory: all are asked for before the first is looked at.
void hash_inputs(const GraphDraft& draft, const OpSpec& spec, std::vector<std::uint32_t>& hashes) {
  hashes.clear();
  for (const InputSpec& input : spec.inputs) {
    hashes.push_back(Interner::hash(input.key));
    draft.keys->fetch_slot(hashes.back());
  }
  for (const std::uint32_t hash : hashes) draft.keys->fetch_text(hash);
}

// Gives a key its meaning; refuses a key that has one.
std::uint32_t define(GraphDraft& draft, std::string_view key, Meaning meaning, SourcePlace place) {
  const bool is_op = meaning.what == Meaning::What::kOp;
  const std::uint32_t symbol = symbol_of(draft, key, Interner::hash(key), "key", place);
  Meaning& known = draft.meanings[symbol];
  if (known.what != Meaning::What::kUnknown) {
    const SourcePlace first = known.what == Meaning::What::kOp
                                  ? draft.ops[known.position].place
                                  : draft.variables[known.position].place;
    const std::string found = std::string(is_op ? "op " : "variable ") + quoted(key);
    const std::string line = first.line > 0 ? " on line " + std::to_string(first.line) : "";
    draft.refuse(place, found,
                 std::string("a key of its own: an ") +
                     (known.what == Meaning::What::kOp ? "earlier op" : "earlier variable") + line +
                     " has this one");
  }
  if (meaning.position >= kMostOps) {
    draft.refuse(place, "more than 2^31 ops or variables", "fewer");
  }
  known = meaning;
  return symbol;
}

std::uint32_t group_of(GraphDraft& draft, std::string_view name, SourcePlace place) {
  if (const auto known = draft.group_names.find(name)) return *known;
  check_text(draft, name, "group name", place);
  draft.groups.emplace_back();
  return draft.group_names.intern(name);
}

std::uint32_t member_of(GraphDraft& draft, std::string_view name, SourcePlace place) {
  const std::uint32_t group = group_of(draft, name, place);
  draft.groups[group].has_members = true;
  return group;
}

// Pins are sets: their order in the file means nothing.
Pins sorted(const GraphDraft& draft, Pins pins, SourcePlace place) {
  for (std::vector<std::string>* names : {&pins.on, &pins.avoid}) {
    for (const std::string& name : *names) check_text(draft, name, "name of a device", place);
    std::ranges::sort(*names);
    names->erase(std::unique(names->begin(), names->end()), names->end());
  }
  return pins;
}

// Extra notes are kept by name, each once.
Notes sorted(const GraphDraft& draft, Notes notes, SourcePlace place) {
  std::ranges::sort(notes.extra);
  for (std::size_t n = 0; n < notes.extra.size(); ++n) {
    const std::string& name = notes.extra[n].first;
    if (!name.starts_with("x-")) draft.refuse(place, "note " + quoted(name), "a name like x-note");
    check_text(draft, name, "name of a note", place);
    if (n > 0 && notes.extra[n - 1].first == name) {
      draft.refuse(place, "note " + quoted(name) + " twice", "each note at most once");
    }
  }
  return notes;
}

void check_range(const GraphDraft& draft, std::optional<std::int64_t> value, const char* what,
                 std::string_view key, SourcePlace place) {
  if (!value || (*value >= 0 && *value <= kMaxQuantity)) return;
  draft.refuse(place, std::string(what) + ' ' + std::to_string(*value) + " of " + quoted(key),
               "a number from 0 to 2^62 - 1");
}

// Data inputs of an op, controls not counted: what alias_of and takes_over refer to.
void check_output(const GraphDraft& draft, const OpSpec& op, const OutputSpec& output,
                  std::span<const InputSpec* const> data_inputs) {
  const SourcePlace place = output.place.line > 0 ? output.place : op.place;
  check_range(draft, output.bytes, "size", op.key, place);
  if (output.alias_of && output.takes_over) {
    draft.refuse(place, "an output of op " + quoted(op.key) + " that is an alias and takes over",
                 "one of them");
  }
  const auto number = output.alias_of ? output.alias_of : output.takes_over;
  if (!number) return;
  const auto found = [&] {
    return (output.alias_of ? '=' : '~') + std::to_string(*number) + " of op " + quoted(op.key);
  };
  if (*number >= data_inputs.size()) {
    draft.refuse(place, found(),
                 data_inputs.empty() ? "no such output: the op has no data inputs"
                                     : "the number of a data input, at most " +
                                           std::to_string(data_inputs.size() - 1));
  }
  if (output.takes_over && data_inputs[*number]->modifies) {
    draft.refuse(place, found() + ", an input that the op modifies", "an input that it only reads");
  }
}

void check_op(const GraphDraft& draft, const OpSpec& spec) {
  if (spec.costs.empty()) {
    draft.refuse(spec.place, "op " + quoted(spec.key) + " without a cost", "a cost");
  }
  for (const Cost cost : spec.costs) {
    if (cost.is_known()) check_range(draft, cost.ns(), "cost", spec.key, spec.place);
  }
  check_range(draft, spec.workspace_bytes, "workspace", spec.key, spec.place);
  check_range(draft, spec.flops, "flops", spec.key, spec.place);
  check_range(draft, spec.moved_bytes, "moved bytes", spec.key, spec.place);
  check_range(draft, spec.at, "at", spec.key, spec.place);
  const bool are_referred_to = std::ranges::any_of(
      spec.outputs, [](const OutputSpec& output) { return output.alias_of || output.takes_over; });
  std::vector<const InputSpec*> data_inputs;
  if (are_referred_to) data_inputs.reserve(spec.inputs.size());
  for (const InputSpec& input : spec.inputs) {
    if (are_referred_to && !input.control) data_inputs.push_back(&input);
    if (input.control && (input.modifies || input.output != 0)) {
      draft.refuse(input.place.line > 0 ? input.place : spec.place,
                   std::string("control edge of op ") + quoted(spec.key) +
                       (input.modifies ? " that modifies " : " from an output of ") +
                       quoted(input.key),
                   "a control edge from an op as a whole");
    }
  }
  for (const OutputSpec& output : spec.outputs) check_output(draft, spec, output, data_inputs);
}

}  // namespace

void GraphDraft::refuse(SourcePlace place, const std::string& found,
                        const std::string& expected) const {
  std::string where = source;
  if (place.line > 0) {
    where += ':' + std::to_string(place.line) + ':' + std::to_string(place.column);
  }
  throw Error(where + ": found " + found + ", expected " + expected);
}

GraphBuilder::GraphBuilder(std::string source) : draft_(std::make_unique<GraphDraft>()) {
  draft_->source = std::move(source);
}

GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::reserve(std::size_t ops) {
  draft_->keys->reserve(ops);
  draft_->meanings.reserve(ops);
  draft_->ops.reserve(ops);
  draft_->inputs.reserve(3 * ops);
  draft_->outputs.reserve(ops + ops / 4);
  draft_->costs.reserve(ops);
}

void GraphBuilder::about(std::string key, std::string value) {
  about({{std::move(key), std::move(value)}});
}

void GraphBuilder::about(std::vector<std::pair<std::string, std::string>> entries) {
  if (entries.empty()) return;
  for (const auto& [key, value] : entries) check_text(*draft_, key, "key of an about line", {});
  draft_->about_line_sizes.push_back(static_cast<std::uint32_t>(entries.size()));
  std::ranges::move(entries, std::back_inserter(draft_->about));
}

void GraphBuilder::kinds(std::vector<std::string> names, SourcePlace place) {
  if (!draft_->kinds.empty()) {
    draft_->refuse(place, "kinds of device a second time", "them at most once");
  }
  if (names.empty()) draft_->refuse(place, "no kind of device", "at least one");
  for (std::size_t n = 0; n < names.size(); ++n) {
    check_text(*draft_, names[n], "kind of device", place);
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(n), names[n]) !=
        names.begin() + static_cast<std::ptrdiff_t>(n)) {
      draft_->refuse(place, "kind " + quoted(names[n]) + " twice", "kinds of different names");
    }
  }
  draft_->kinds = std::move(names);
}

void GraphBuilder::group(std::string_view name, Pins pins, SourcePlace place) {
  pins = sorted(*draft_, std::move(pins), place);
  GraphDraft::GroupRecord& group = draft_->groups[group_of(*draft_, name, place)];
  if (group.declared) {
    const std::string line =
        group.place.line > 0 ? " on line " + std::to_string(group.place.line) : "";
    draft_->refuse(place, "group " + quoted(name),
                   "a name of its own: an earlier group" + line + " has this one");
  }
  group.declared = true;
  group.pins = std::move(pins);
  group.place = place;
}

void GraphBuilder::variable(const VariableSpec& spec) {
  check_range(*draft_, spec.bytes, "size", spec.key, spec.place);
  GraphDraft::VariableRecord record{.bytes = spec.bytes,
                                    .group = std::nullopt,
                                    .pins = sorted(*draft_, spec.pins, spec.place),
                                    .notes = sorted(*draft_, spec.notes, spec.place),
                                    .place = spec.place};
  const auto position = static_cast<std::uint32_t>(draft_->variables.size());
  record.symbol = define(*draft_, spec.key, {Meaning::What::kVariable, position}, spec.place);
  if (spec.group) record.group = member_of(*draft_, *spec.group, spec.place);
  draft_->variables.push_back(std::move(record));
}

void GraphBuilder::op(const OpSpec& spec) {
  GraphDraft& draft = *draft_;
  check_op(draft, spec);
  check_text(draft, spec.type, "type of an op", spec.place);
  const auto record = static_cast<std::uint32_t>(draft.ops.size());
  if (draft.outputs.size() + spec.outputs.size() > kMostTensors ||
      draft.inputs.size() + spec.inputs.size() > kMostTensors) {
    draft.refuse(spec.place, "more than 2^32 tensors or inputs", "fewer");
  }
  GraphDraft::OpRecord op{.type = draft.types.intern(spec.type),
                          .place = spec.place,
                          .first_input = static_cast<std::uint32_t>(draft.inputs.size()),
                          .input_count = static_cast<std::uint32_t>(spec.inputs.size()),
                          .first_output = static_cast<std::uint32_t>(draft.outputs.size()),
                          .output_count = static_cast<std::uint32_t>(spec.outputs.size()),
                          .first_cost = static_cast<std::uint32_t>(draft.costs.size()),
                          .cost_count = static_cast<std::uint32_t>(spec.costs.size()),
                          .group = std::nullopt,
                          .workspace_bytes = spec.workspace_bytes,
                          .flops = spec.flops,
                          .moved_bytes = spec.moved_bytes,
                          .at = spec.at,
                          .phase = spec.phase,
                          .every = spec.every};
  hash_inputs(draft, spec, draft.input_hashes);
  for (std::size_t n = 0; n < spec.inputs.size(); ++n) {
    const InputSpec& input = spec.inputs[n];
    const SourcePlace place = input.place.line > 0 ? input.place : spec.place;
    draft.inputs.push_back({symbol_of(draft, input.key, draft.input_hashes[n], "input", place),
                            input.output, place.column, input.control, input.modifies});
  }
  if (spec.group) op.group = member_of(draft, *spec.group, spec.place);
  Pins pins = spec.pins.empty() ? Pins{} : sorted(draft, spec.pins, spec.place);
  Notes notes = spec.notes.empty() ? Notes{} : sorted(draft, spec.notes, spec.place);
  // From here on nothing is refused but a key given twice, which leaves inputs of no op behind.
  op.symbol = define(draft, spec.key, {Meaning::What::kOp, record}, spec.place);
  draft.ops.push_back(op);
  draft.outputs.insert(draft.outputs.end(), spec.outputs.begin(), spec.outputs.end());
  draft.costs.insert(draft.costs.end(), spec.costs.begin(), spec.costs.end());
  if (!pins.empty()) draft.op_pins.emplace_back(record, std::move(pins));
  if (!notes.empty()) draft.op_notes.emplace_back(record, std::move(notes));
}

std::shared_ptr<const Graph> GraphBuilder::build() {
  PARDNN_CHECK(draft_ != nullptr);
  const std::vector<std::uint32_t> order = topological_order(*draft_);
  std::shared_ptr<const Graph> graph = assemble(*draft_, order);
  check_rules(*graph, *draft_, order);
  draft_.reset();
  return graph;
}

}  // namespace pardnn
