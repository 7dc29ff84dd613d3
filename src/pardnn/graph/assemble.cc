#include "pardnn/graph/assemble.h"

#include <algorithm>
#include <numeric>

#include "pardnn/base/error.h"
#include "pardnn/base/text.h"

namespace pardnn {
namespace {

using Meaning = GraphDraft::Meaning;

// Lists of values per id from pairs given in ascending order of values, each value once per id.
// `each` is called twice with a function that takes (id, value).
template <IdType Id, class T, class Each>
Lists<Id, T> collect(std::size_t ids, const Each& each) {
  std::vector<std::uint32_t> first(ids + 1, 0), end(ids, 0);
  each([&](Id id, T) { ++first[index(id) + 1]; });
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::copy(first.begin(), first.end() - 1, end.begin());
  std::vector<T> values(first.back());
  each([&](Id id, T value) {
    std::uint32_t& to = end[index(id)];
    if (to == first[index(id)] || values[to - 1] != value) values[to++] = value;
  });
  std::uint32_t to = 0;
  for (std::size_t id = 0; id < ids; ++id) {
    const std::uint32_t from = first[id];
    first[id] = to;
    for (std::uint32_t at = from; at < end[id]; ++at) values[to++] = values[at];
  }
  first[ids] = to;
  values.resize(to);
  values.shrink_to_fit();
  return Lists<Id, T>(std::move(first), std::move(values));
}

// Positions 0 … count - 1 in ascending order of what `text` says of them.
template <class Text>
std::vector<std::uint32_t> sorted_positions(std::size_t count, const Text& text) {
  std::vector<std::uint32_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0u);
  std::ranges::sort(positions, {}, text);
  return positions;
}

}  // namespace

class GraphAssembler {
 public:
  GraphAssembler(const GraphDraft& draft, const std::vector<std::uint32_t>& order)
      : draft_(draft), order_(order), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<const Graph> run() {
    graph_->source_ = draft_.source;
    graph_->about_ = draft_.about;
    graph_->about_line_sizes_ = draft_.about_line_sizes;
    if (draft_.kinds.empty()) {
      graph_->kinds_.push("any");
    } else {
      graph_->kinds_ = Table<KindId, std::string>(draft_.kinds);
    }
    add_groups();
    add_variables();
    add_ops();
    add_pins_and_notes();
    add_readers();
    return graph_;
  }

 private:
  std::optional<GroupId> group(std::optional<std::uint32_t> number) const {
    return number ? std::optional(group_of_number_[*number]) : std::nullopt;
  }

  // A group that is only declared and says nothing is left out: files do not keep it.
  void add_groups() {
    const auto name = [&](std::uint32_t number) { return draft_.group_names[number]; };
    group_of_number_.resize(draft_.groups.size());
    for (const std::uint32_t number : sorted_positions(draft_.groups.size(), name)) {
      const GraphDraft::GroupRecord& record = draft_.groups[number];
      if (!record.has_members && record.pins.empty()) continue;
      group_of_number_[number] = graph_->groups_.push({std::string(name(number)), record.pins});
    }
  }

  void add_variables() {
    const auto key = [&](std::uint32_t n) { return (*draft_.keys)[draft_.variables[n].symbol]; };
    variable_of_position_.resize(draft_.variables.size());
    graph_->variables_.reserve(draft_.variables.size());
    for (const std::uint32_t position : sorted_positions(draft_.variables.size(), key)) {
      const GraphDraft::VariableRecord& record = draft_.variables[position];
      const VariableId variable = graph_->variables_.push({.key = std::string(key(position)),
                                                           .bytes = record.bytes,
                                                           .group = group(record.group),
                                                           .line = record.place.line});
      variable_of_position_[position] = variable;
      if (!record.pins.empty()) graph_->variable_pins_.emplace_back(variable, record.pins);
      if (!record.notes.empty()) graph_->variable_notes_.emplace_back(variable, record.notes);
    }
    graph_->variable_notes_.shrink_to_fit();
  }

  void add_ops() {
    op_of_record_.resize(order_.size());
    graph_->keys_ = draft_.keys;
    graph_->op_of_key_.assign(draft_.keys->size(), std::nullopt);
    graph_->ops_.reserve(order_.size());
    graph_->tensors_.reserve(draft_.outputs.size());
    graph_->origins_.reserve(draft_.outputs.size());
    graph_->inputs_.reserve(order_.size(), draft_.inputs.size());
    graph_->controls_.reserve(order_.size(), 0);
    graph_->costs_.reserve(order_.size() * graph_->kinds_.size());
    for (std::size_t n = 0; n < order_.size(); ++n) {
      const OpId op{static_cast<std::uint32_t>(n)};
      const GraphDraft::OpRecord& record = draft_.ops[order_[n]];
      op_of_record_[order_[n]] = op;
      graph_->op_of_key_[record.symbol] = op;
      graph_->ops_.push(
          {.key = record.symbol,
           .type = graph_->types_.intern(draft_.types[record.type]),
           .line = record.place.line,
           .first_output = TensorId{static_cast<std::uint32_t>(graph_->tensors_.size())},
           .output_count = record.output_count,
           .group = group(record.group),
           .workspace_bytes = record.workspace_bytes,
           .at = record.at,
           .flops = record.flops,
           .moved_bytes = record.moved_bytes,
           .phase = record.phase,
           .every = record.every});
      graph_->has_given_order_ = graph_->has_given_order_ || record.at.has_value();
      add_costs(record);
      add_inputs(record);
      add_outputs(op, record);
    }
  }

  void add_costs(const GraphDraft::OpRecord& record) {
    const std::size_t kinds = graph_->kinds_.size();
    const auto first = draft_.costs.begin() + record.first_cost;
    if (record.cost_count != 1 && record.cost_count != kinds) {
      draft_.refuse(
          record.place,
          std::to_string(record.cost_count) + " costs of op " + quoted(draft_.key(record)),
          kinds == 1 ? "one" : "one, or " + std::to_string(kinds) + ", one per kind");
    }
    if (record.cost_count == 1) {
      graph_->costs_.insert(graph_->costs_.end(), kinds, *first);
    } else {
      graph_->costs_.insert(graph_->costs_.end(), first, first + record.cost_count);
    }
  }

  void add_inputs(const GraphDraft::OpRecord& record) {
    controls_.clear();
    for (const GraphDraft::InputRecord& input : draft_.inputs_of(record)) {
      const Meaning& meaning = draft_.meanings[input.symbol];
      if (meaning.what == Meaning::What::kVariable) {
        graph_->inputs_.add(Input::of(variable_of_position_[meaning.position], input.modifies));
      } else if (!input.control) {
        const OpId producer = op_of_record_[meaning.position];
        const std::uint32_t first = index(graph_->ops_[producer].first_output);
        graph_->inputs_.add(Input::of(TensorId{first + input.output}, input.modifies));
      } else if (!draft_.ops[meaning.position].every) {
        controls_.push_back(op_of_record_[meaning.position]);
      }
    }
    graph_->inputs_.close();
    std::ranges::sort(controls_);
    controls_.erase(std::unique(controls_.begin(), controls_.end()), controls_.end());
    for (const OpId before : controls_) graph_->controls_.add(before);
    graph_->controls_.close();
  }

  void add_outputs(OpId op, const GraphDraft::OpRecord& record) {
    std::uint32_t number = 0;
    for (const OutputSpec& output : draft_.outputs_of(record)) {
      const TensorId id{static_cast<std::uint32_t>(graph_->tensors_.size())};
      Tensor tensor{.producer = op,
                    .number = number++,
                    .bytes = output.bytes,
                    .alias_of = output.alias_of,
                    .takes_over = output.takes_over,
                    .fetched = output.fetched};
      Origin origin{.tensor = id, .variable = std::nullopt};
      if (output.alias_of) {
        const Input input = graph_->inputs_[op][*output.alias_of];
        if (input.is_variable()) {
          origin = {.tensor = std::nullopt, .variable = input.variable()};
        } else {
          origin = graph_->origins_[input.tensor()];
        }
        if (!tensor.bytes) {
          tensor.bytes = input.is_variable() ? graph_->variables_[input.variable()].bytes
                                             : graph_->tensors_[input.tensor()].bytes;
        }
      }
      graph_->tensors_.push(tensor);
      graph_->origins_.push(origin);
    }
  }

  void add_pins_and_notes() {
    for (const auto& [record, pins] : draft_.op_pins) {
      graph_->op_pins_.emplace_back(op_of_record_[record], pins);
    }
    graph_->op_notes_.reserve(draft_.op_notes.size());
    for (const auto& [record, notes] : draft_.op_notes) {
      graph_->op_notes_.emplace_back(op_of_record_[record], notes);
    }
    std::ranges::sort(graph_->op_pins_, {}, &std::pair<OpId, Pins>::first);
    std::ranges::sort(graph_->op_notes_, {}, &std::pair<OpId, Notes>::first);
  }

  void add_readers() {
    Graph& graph = *graph_;
    graph.readers_ = collect<TensorId, OpId>(graph.tensors_.size(), [&](const auto& emit) {
      for (const OpId op : graph.ops()) {
        for (const Input input : graph.inputs(op)) {
          if (!input.is_variable()) emit(input.tensor(), op);
        }
      }
    });
    graph.touchers_ = collect<VariableId, OpId>(graph.variables_.size(), [&](const auto& emit) {
      for (const OpId op : graph.ops()) {
        for (const Input input : graph.inputs(op)) {
          if (input.is_variable()) emit(input.variable(), op);
        }
      }
    });
    graph.control_readers_ = collect<OpId, OpId>(graph.ops_.size(), [&](const auto& emit) {
      for (const OpId op : graph.ops()) {
        for (const OpId before : graph.controls(op)) emit(before, op);
      }
    });
  }

  const GraphDraft& draft_;
  const std::vector<std::uint32_t>& order_;
  std::shared_ptr<Graph> graph_;
  std::vector<GroupId> group_of_number_;
  std::vector<VariableId> variable_of_position_;
  std::vector<OpId> op_of_record_;
  std::vector<OpId> controls_;  // of the op at hand
};

std::shared_ptr<const Graph> assemble(const GraphDraft& draft,
                                      const std::vector<std::uint32_t>& order) {
  return GraphAssembler(draft, order).run();
}

}  // namespace pardnn
