// Graph: the ops, tensors and variables of one training step. Built once, never changed.
//
// Ids are a topological order that takes the least key first (rule D5), so a loop over ops()
// meets every producer before its readers and does not depend on the order of the file's lines.
// All of it lies in flat arrays; an op of an ordinary training step costs about 300 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pardnn/base/error.h"
#include "pardnn/base/ids.h"
#include "pardnn/base/interner.h"
#include "pardnn/base/table.h"

namespace pardnn {

// Time of an op on one kind of device: known, unknown, or not allowed there.
class Cost {
 public:
  static Cost known(std::int64_t ns) { return Cost(ns); }
  static Cost unknown() { return Cost(kUnknown); }
  static Cost not_allowed() { return Cost(kNotAllowed); }
  bool is_known() const { return value_ >= 0; }
  bool is_allowed() const { return value_ != kNotAllowed; }
  std::int64_t ns() const {
    PARDNN_CHECK(is_known());
    return value_;
  }
  friend bool operator==(Cost, Cost) = default;

 private:
  static constexpr std::int64_t kUnknown = -1, kNotAllowed = -2;
  explicit Cost(std::int64_t value) : value_(value) {}
  std::int64_t value_;
};

enum class Phase : std::uint8_t { kNone, kForward, kBackward, kUpdate };

// One data input of an op: a tensor or a variable, read or modified.
class Input {
 public:
  static Input of(TensorId tensor, bool modifies) { return {index(tensor), false, modifies}; }
  static Input of(VariableId variable, bool modifies) { return {index(variable), true, modifies}; }
  bool is_variable() const { return is_variable_; }
  bool modifies() const { return modifies_; }
  TensorId tensor() const {
    PARDNN_CHECK(!is_variable_);
    return TensorId{id_};
  }
  VariableId variable() const {
    PARDNN_CHECK(is_variable_);
    return VariableId{id_};
  }

 private:
  Input(std::uint32_t id, bool is_variable, bool modifies)
      : id_(id), is_variable_(is_variable), modifies_(modifies) {}
  std::uint32_t id_;
  bool is_variable_, modifies_;
};

// One output of an op.
struct Tensor {
  OpId producer;
  std::uint32_t number = 0;                 // which output of its producer
  std::optional<std::int64_t> bytes;        // nothing: unknown
  std::optional<std::uint32_t> alias_of;    // shares the buffer behind this data input
  std::optional<std::uint32_t> takes_over;  // may take over the buffer behind this data input
  bool fetched = false;                     // read by the user after the step
};

// Where an op, a variable or a group may be: names of devices or of kinds, empty = no wish.
struct Pins {
  std::vector<std::string> on, avoid;
  bool empty() const { return on.empty() && avoid.empty(); }
  friend bool operator==(const Pins&, const Pins&) = default;
};

// What is kept for people and not interpreted.
struct Notes {
  std::optional<std::string> name;
  // The x-… attributes with their whole names, ascending by them.
  std::vector<std::pair<std::string, std::string>> extra;
  bool empty() const { return !name && extra.empty(); }
  friend bool operator==(const Notes&, const Notes&) = default;
};

// What lies behind a tensor once aliases are followed to the end: a tensor that owns a buffer, or
// a variable.
struct Origin {
  std::optional<TensorId> tensor;
  std::optional<VariableId> variable;
  friend bool operator==(const Origin&, const Origin&) = default;
};

class GraphAssembler;

class Graph {
 public:
  IdRange<OpId> ops() const { return IdRange<OpId>(ops_.size()); }
  IdRange<TensorId> tensors() const { return IdRange<TensorId>(tensors_.size()); }
  IdRange<VariableId> variables() const { return IdRange<VariableId>(variables_.size()); }
  IdRange<GroupId> groups() const { return IdRange<GroupId>(groups_.size()); }
  IdRange<KindId> kinds() const { return IdRange<KindId>(kinds_.size()); }

  std::string_view key(OpId op) const { return (*keys_)[ops_[op].key]; }
  std::string_view key(VariableId variable) const { return variables_[variable].key; }
  std::string_view name(GroupId group) const { return groups_[group].name; }
  std::string_view name(KindId kind) const { return kinds_[kind]; }
  std::optional<OpId> find_op(std::string_view key) const;
  std::optional<VariableId> find_variable(std::string_view key) const;
  std::optional<GroupId> find_group(std::string_view name) const;
  std::optional<KindId> find_kind(std::string_view name) const;

  std::string_view type(OpId op) const { return types_[ops_[op].type]; }
  Cost cost(OpId op, KindId kind) const { return costs_[index(op) * kinds_.size() + index(kind)]; }
  std::int64_t workspace_bytes(OpId op) const { return ops_[op].workspace_bytes; }
  Phase phase(OpId op) const { return ops_[op].phase; }
  bool is_every(OpId op) const { return ops_[op].every; }
  std::optional<std::int64_t> at(OpId op) const { return ops_[op].at; }
  std::optional<std::int64_t> flops(OpId op) const { return ops_[op].flops; }
  std::optional<std::int64_t> moved_bytes(OpId op) const { return ops_[op].moved_bytes; }
  std::optional<GroupId> group(OpId op) const { return ops_[op].group; }
  std::optional<GroupId> group(VariableId variable) const { return variables_[variable].group; }
  std::optional<std::int64_t> bytes(VariableId variable) const {
    return variables_[variable].bytes;
  }

  const Tensor& tensor(TensorId tensor) const { return tensors_[tensor]; }
  IdRange<TensorId> outputs(OpId op) const {
    return {ops_[op].first_output, TensorId{index(ops_[op].first_output) + ops_[op].output_count}};
  }
  // Data inputs in the order written, variables among them: what alias_of and takes_over count.
  std::span<const Input> inputs(OpId op) const { return inputs_[op]; }
  // Ops that `op` waits for by a control edge, ascending, each once. Edges from `every` ops are
  // void (rule X1) and not here.
  std::span<const OpId> controls(OpId op) const { return controls_[op]; }
  // Ops that wait for `op` by a control edge, ascending, each once.
  std::span<const OpId> control_readers(OpId op) const { return control_readers_[op]; }
  // Ops that read or modify the tensor as a data input, ascending, each once.
  std::span<const OpId> readers(TensorId tensor) const { return readers_[tensor]; }
  // Ops that touch the variable itself (read ops, updates), ascending, each once.
  std::span<const OpId> touchers(VariableId variable) const { return touchers_[variable]; }
  // The end of the chain of aliases behind a tensor; the tensor itself when it is no alias.
  Origin origin(TensorId tensor) const { return origins_[tensor]; }

  // Pins and notes are rare; an op, variable or group without any answers an empty one.
  const Pins& pins(OpId op) const;
  const Pins& pins(VariableId variable) const;
  const Pins& pins(GroupId group) const { return groups_[group].pins; }
  const Notes& notes(OpId op) const;
  const Notes& notes(VariableId variable) const;
  // The entries of the `about` lines, in the order read, and how many stood on each line.
  const std::vector<std::pair<std::string, std::string>>& about() const { return about_; }
  const std::vector<std::uint32_t>& about_line_sizes() const { return about_line_sizes_; }
  bool has_given_order() const { return has_given_order_; }  // every ordinary op has `at`

  // Where the graph came from, for messages: a file's name, or a word for a program; and the line
  // that defined an op or a variable, 0 when built by program.
  const std::string& source() const { return source_; }
  std::uint32_t line(OpId op) const { return ops_[op].line; }
  std::uint32_t line(VariableId variable) const { return variables_[variable].line; }

 private:
  friend class GraphAssembler;

  struct OpRow {
    std::uint32_t key = 0;  // its number in keys_
    std::uint32_t type = 0;
    std::uint32_t line = 0;
    TensorId first_output{0};
    std::uint32_t output_count = 0;
    std::optional<GroupId> group;
    std::int64_t workspace_bytes = 0;
    std::optional<std::int64_t> at, flops, moved_bytes;
    Phase phase = Phase::kNone;
    bool every = false;
  };
  struct VariableRow {
    std::string key;
    std::optional<std::int64_t> bytes;
    std::optional<GroupId> group;
    std::uint32_t line = 0;
  };
  struct GroupRow {
    std::string name;
    Pins pins;
  };

  Table<KindId, std::string> kinds_;
  Table<GroupId, GroupRow> groups_;
  Table<VariableId, VariableRow> variables_;
  Table<OpId, OpRow> ops_;
  Table<TensorId, Tensor> tensors_;
  Table<TensorId, Origin> origins_;
  std::vector<Cost> costs_;  // ops x kinds
  Interner types_;
  Lists<OpId, Input> inputs_;
  Lists<OpId, OpId> controls_, control_readers_;
  Lists<TensorId, OpId> readers_;
  Lists<VariableId, OpId> touchers_;
  std::shared_ptr<const Interner> keys_;  // of ops and variables
  std::vector<std::optional<OpId>> op_of_key_;
  // Ops and variables that have any, ascending.
  std::vector<std::pair<OpId, Pins>> op_pins_;
  std::vector<std::pair<OpId, Notes>> op_notes_;
  std::vector<std::pair<VariableId, Pins>> variable_pins_;
  std::vector<std::pair<VariableId, Notes>> variable_notes_;
  std::vector<std::pair<std::string, std::string>> about_;
  std::vector<std::uint32_t> about_line_sizes_;
  std::string source_;
  bool has_given_order_ = false;
};

}  // namespace pardnn
