// Problem: one graph on one machine under stated rules; all that a planner may ask.
//
// Building one is the door where what cannot be planned is refused: unknown costs or sizes, pins
// in conflict, kinds the machine has not, in-place ops without the order that rule M4 asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pardnn/graph/graph.h"
#include "pardnn/problem/allowed.h"
#include "pardnn/problem/machine.h"

namespace pardnn {

enum class Dispatch : std::uint8_t {
  kSequence,  // devices run their ops strictly in the plan's order (rule D1)
  kFifo,      // a free device takes the op that was ready first (rule D2)
};

// How a plan is meant to run; recorded in the plan.
struct Rules {
  Dispatch dispatch = Dispatch::kSequence;
  bool given_order = false;           // sequences follow the graph's `at` (rule D4b)
  bool contention = true;             // transfers wait for their channels (rule T6)
  std::int64_t margin_per_mille = 0;  // of each capacity, left free (rule M7)
  bool any_timing = false;            // plan against the any-timing peak (rule E1)
  friend bool operator==(const Rules&, const Rules&) = default;
};

class Problem {
 public:
  // Throws Error (see above). A kind of the machine that the graph has no costs for runs no op
  // (rule X4), but at least one kind must match; a graph of the one kind `any` runs everywhere.
  Problem(std::shared_ptr<const Graph> graph, Machine machine, Rules rules = {});

  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }
  const Machine& machine() const { return machine_; }
  const Rules& rules() const { return rules_; }
  IdRange<DeviceId> devices() const { return machine_.devices.ids(); }
  std::size_t device_count() const { return machine_.devices.size(); }

  // Units: what is placed as a whole. Every group that has members is one, every op of no group
  // and every variable of no group is one of its own. `every` ops belong to none. Numbered by their
  // first op; units of variables alone come last.
  IdRange<UnitId> units() const { return IdRange<UnitId>(allowed_.size()); }
  std::optional<UnitId> unit(OpId op) const { return unit_of_op_[op]; }
  UnitId unit(VariableId variable) const { return unit_of_variable_[variable]; }
  std::span<const OpId> ops(UnitId unit) const { return unit_ops_[unit]; }  // ascending
  std::span<const VariableId> variables(UnitId unit) const { return unit_variables_[unit]; }
  const DeviceSet& allowed(UnitId unit) const { return allowed_[unit]; }  // never empty
  bool is_allowed(UnitId unit, DeviceId device) const { return allowed_[unit][index(device)]; }

  // How long an op takes on a device: max(1, cost) (rule N2); 0 for `every` ops. The op must be
  // allowed there.
  std::int64_t duration_ns(OpId op, DeviceId device) const {
    return durations_[index(op) * columns_.size() + kind_of_device_[device]];
  }
  // Mean over the devices where the op is allowed, rounded down, at least 1; 0 for `every` ops.
  std::int64_t mean_duration_ns(OpId op) const { return mean_duration_ns_[op]; }

  std::int64_t bytes(TensorId tensor) const { return *graph_->tensor(tensor).bytes; }
  // Rounded up to the machine's granularity (rule N4).
  std::int64_t buffer_bytes(TensorId tensor) const { return rounded(bytes(tensor)); }
  std::int64_t buffer_bytes(VariableId variable) const { return rounded(*graph_->bytes(variable)); }
  std::int64_t workspace_bytes(OpId op) const { return rounded(graph_->workspace_bytes(op)); }
  std::int64_t rounded(std::int64_t bytes) const;

  std::int64_t capacity_bytes(DeviceId device) const {
    return machine_.devices[device].capacity_bytes;
  }
  std::int64_t reserve_bytes(DeviceId device) const {
    return machine_.devices[device].reserve_bytes;
  }
  // capacity less the margin: what a peak, the reserve included, must not exceed (rule M7).
  std::int64_t limit_bytes(DeviceId device) const { return limit_bytes_[device]; }

  bool has_link(DeviceId from, DeviceId to) const { return machine_.link(from, to).has_value(); }
  const Link& link(DeviceId from, DeviceId to) const { return *machine_.link(from, to); }
  // Time a transfer holds its channels: max(1, overhead + bytes / rate) (rule T2).
  std::int64_t busy_ns(std::int64_t bytes, DeviceId from, DeviceId to) const;
  // busy plus latency: how long an unhindered transfer takes.
  std::int64_t crossing_ns(std::int64_t bytes, DeviceId from, DeviceId to) const;
  // Mean and least crossing over all ordered pairs that have a link; 0 on a machine without links.
  std::int64_t mean_crossing_ns(std::int64_t bytes) const;
  std::int64_t least_crossing_ns(std::int64_t bytes) const;

  // All ordinary ops by their `at`; empty unless the rules ask for the given order (rule D4b).
  std::span<const OpId> given_order() const { return given_order_; }

 private:
  // Links that cost the same, counted once.
  struct LinkClass {
    Link link;  // one of them
    std::int64_t count;
  };

  void check_rules() const;
  void make_columns();
  void make_durations();
  void make_units();
  void make_allowed();
  void make_link_classes();
  void check_totals() const;
  void make_given_order();

  std::shared_ptr<const Graph> graph_;
  Machine machine_;
  Rules rules_;
  std::vector<std::optional<KindId>> columns_;     // kinds of the machine; none: not in the graph
  Table<DeviceId, std::uint32_t> kind_of_device_;  // column of durations_
  std::vector<std::int64_t> durations_;            // ops x columns
  Table<OpId, std::int64_t> mean_duration_ns_;
  Table<OpId, std::optional<UnitId>> unit_of_op_;
  Table<VariableId, UnitId> unit_of_variable_;
  Lists<UnitId, OpId> unit_ops_;
  Lists<UnitId, VariableId> unit_variables_;
  Table<UnitId, DeviceSet> allowed_;
  Table<DeviceId, std::int64_t> limit_bytes_;
  std::vector<LinkClass> link_classes_;
  std::vector<OpId> given_order_;
};

}  // namespace pardnn
