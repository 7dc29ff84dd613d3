#include "pardnn/problem/problem.h"

#include <algorithm>
#include <map>
#include <utility>

#include "pardnn/base/error.h"
#include "pardnn/base/integers.h"
#include "pardnn/problem/allowed.h"
#include "pardnn/problem/in_place.h"
#include "pardnn/problem/unknowns.h"

namespace pardnn {
namespace {

__extension__ using Wide = __int128;

}  // namespace

Problem::Problem(std::shared_ptr<const Graph> graph, Machine machine, Rules rules)
    : graph_(std::move(graph)), machine_(std::move(machine)), rules_(rules) {
  PARDNN_CHECK(graph_ != nullptr);
  machine_.validate();
  check_rules();
  make_columns();
  check_known(*graph_, columns_);
  check_in_place(*graph_);
  make_durations();
  make_units();
  make_allowed();
  make_link_classes();
  check_totals();
  make_given_order();
}

void Problem::check_rules() const {
  if (rules_.margin_per_mille < 0 || rules_.margin_per_mille > 999) {
    throw Error("margin: found " + std::to_string(rules_.margin_per_mille) +
                ", expected 0 to 999 per mille");
  }
  if (rules_.dispatch == Dispatch::kFifo && rules_.given_order) {
    throw Error("sequence: found both fifo and given, expected one of them");
  }
  if (rules_.dispatch == Dispatch::kFifo && rules_.any_timing) {
    throw Error(
        "guarantee any-timing: found it together with sequence fifo, expected a fixed sequence, "
        "the only one that such a guarantee can be given for");
  }
  if (rules_.given_order && !graph_->has_given_order()) {
    throw Error(
        "sequence given: found no order in the graph, expected at=N on every op that is not "
        "every=1");
  }
}

void Problem::make_columns() {
  std::map<std::string, std::uint32_t> column_of_kind;
  bool any_match = false;
  for (const Device& device : machine_.devices) {
    const auto [found, is_new] =
        column_of_kind.emplace(device.kind, static_cast<std::uint32_t>(columns_.size()));
    kind_of_device_.push(found->second);
    if (!is_new) continue;
    std::optional<KindId> kind = graph_->find_kind(device.kind);
    if (!kind && graph_->kinds().size() == 1 && graph_->name(KindId{0}) == "any") kind = KindId{0};
    columns_.push_back(kind);
    any_match = any_match || kind.has_value();
  }
  if (any_match) return;
  std::string kinds;
  for (KindId kind : graph_->kinds()) {
    kinds += (kinds.empty() ? "" : ", ") + std::string(graph_->name(kind));
  }
  throw Error("machine " + machine_.name + ": found devices of kind " +
              machine_.devices[DeviceId{0}].kind +
              ", expected a kind the graph has costs for: " + kinds);
}

void Problem::make_durations() {
  durations_.reserve(graph_->ops().size() * columns_.size());
  for (OpId op : graph_->ops()) {
    for (const std::optional<KindId>& kind : columns_) {
      const bool runs = kind && !graph_->is_every(op) && graph_->cost(op, *kind).is_allowed();
      durations_.push_back(runs ? std::max<std::int64_t>(1, graph_->cost(op, *kind).ns()) : 0);
    }
  }
  for (DeviceId device : devices()) {
    const Wide free = Wide{capacity_bytes(device)} * rules_.margin_per_mille / 1000;
    limit_bytes_.push(capacity_bytes(device) - static_cast<std::int64_t>(free));
  }
}

void Problem::make_units() {
  Table<GroupId, std::optional<UnitId>> unit_of_group(graph_->groups().size());
  std::uint32_t count = 0;
  const auto unit_for = [&](std::optional<GroupId> group) {
    if (!group) return UnitId{count++};
    if (!unit_of_group[*group]) unit_of_group[*group] = UnitId{count++};
    return *unit_of_group[*group];
  };
  unit_of_op_.resize(graph_->ops().size());
  for (OpId op : graph_->ops()) {
    if (!graph_->is_every(op)) unit_of_op_[op] = unit_for(graph_->group(op));
  }
  unit_of_variable_.reserve(graph_->variables().size());
  for (VariableId variable : graph_->variables()) {
    unit_of_variable_.push(unit_for(graph_->group(variable)));
  }

  Table<UnitId, std::vector<OpId>> ops(count);
  Table<UnitId, std::vector<VariableId>> variables(count);
  for (OpId op : graph_->ops()) {
    if (unit_of_op_[op]) ops[*unit_of_op_[op]].push_back(op);
  }
  for (VariableId variable : graph_->variables()) {
    variables[unit_of_variable_[variable]].push_back(variable);
  }
  for (UnitId unit : ops.ids()) {
    for (OpId op : ops[unit]) unit_ops_.add(op);
    unit_ops_.close();
    for (VariableId variable : variables[unit]) unit_variables_.add(variable);
    unit_variables_.close();
  }
}

void Problem::make_allowed() {
  AllowedDevices allowed(*graph_, machine_, columns_, kind_of_device_);
  allowed_.reserve(unit_ops_.size());
  for (std::size_t i = 0; i < unit_ops_.size(); ++i) {
    const UnitId unit{static_cast<std::uint32_t>(i)};
    allowed_.push(allowed.of_unit(unit_ops_[unit], unit_variables_[unit]));
  }
  mean_duration_ns_.resize(graph_->ops().size());
  for (OpId op : graph_->ops()) {
    if (!unit_of_op_[op]) continue;
    Wide sum = 0, count = 0;
    for (DeviceId device : devices()) {
      if (!is_allowed(*unit_of_op_[op], device)) continue;
      sum += duration_ns(op, device);
      ++count;
    }
    mean_duration_ns_[op] = std::max<std::int64_t>(1, static_cast<std::int64_t>(sum / count));
  }
}

void Problem::make_link_classes() {
  for (const std::optional<Link>& link : machine_.links) {
    if (!link) continue;
    const auto same = [&](const LinkClass& known) { return known.link.costs_like(*link); };
    const auto found = std::find_if(link_classes_.begin(), link_classes_.end(), same);
    if (found != link_classes_.end()) {
      ++found->count;
    } else {
      link_classes_.push_back({*link, 1});
    }
  }
}

// Nothing that any plan adds up may pass 2^62: bytes held or sent, and time, at worst all ops and
// all transfers one after another.
void Problem::check_totals() const {
  const Wide limit = kMaxQuantity, device_total = static_cast<Wide>(device_count());
  Wide held = 0, sent = 0, worst_ns = 0, sends = 0;
  for (TensorId tensor : graph_->tensors()) {
    held += Wide{bytes(tensor)} + machine_.granularity_bytes;
    sent += bytes(tensor);
    ++sends;
  }
  for (VariableId variable : graph_->variables()) {
    held += Wide{*graph_->bytes(variable)} + machine_.granularity_bytes;
  }
  for (OpId op : graph_->ops()) {
    held += Wide{graph_->workspace_bytes(op)} + machine_.granularity_bytes;
    ++sends;
    std::int64_t longest = 0;
    for (DeviceId device : devices()) longest = std::max(longest, duration_ns(op, device));
    worst_ns += longest;
  }
  for (DeviceId device : devices()) held += reserve_bytes(device);
  Wide worst_transfers = 0;
  for (const auto& [link, links] : link_classes_) {
    const Wide bytes_ns = sent * 1'000'000'000 / link.bytes_per_second;
    const Wide each_ns = Wide{link.overhead_ns} + link.latency_ns + 2;
    worst_transfers = std::max(worst_transfers, bytes_ns + each_ns * sends);
  }
  if (held * device_total > limit) {
    throw Error("graph: found sizes whose sum over all devices passes 2^62 bytes, expected less");
  }
  if (worst_ns + worst_transfers * device_total > limit) {
    throw Error(
        "graph: found costs and transfers whose sum passes 2^62 ns on this machine, expected less");
  }
}

void Problem::make_given_order() {
  if (!rules_.given_order) return;
  for (OpId op : graph_->ops()) {
    if (!graph_->is_every(op)) given_order_.push_back(op);
  }
  std::sort(given_order_.begin(), given_order_.end(),
            [&](OpId a, OpId b) { return *graph_->at(a) < *graph_->at(b); });
}

std::int64_t Problem::rounded(std::int64_t bytes) const {
  if (machine_.granularity_bytes == 1) return bytes;
  return round_up(bytes, machine_.granularity_bytes);
}

namespace {

std::int64_t busy_for(std::int64_t bytes, std::int64_t bytes_per_second, std::int64_t overhead_ns) {
  const std::optional<std::int64_t> ns = transfer_ns(bytes, bytes_per_second);
  PARDNN_CHECK(ns.has_value());
  return std::max<std::int64_t>(1, overhead_ns + *ns);
}

}  // namespace

std::int64_t Problem::busy_ns(std::int64_t bytes, DeviceId from, DeviceId to) const {
  const Link& used = link(from, to);
  return busy_for(bytes, used.bytes_per_second, used.overhead_ns);
}

std::int64_t Problem::crossing_ns(std::int64_t bytes, DeviceId from, DeviceId to) const {
  return busy_ns(bytes, from, to) + link(from, to).latency_ns;
}

std::int64_t Problem::mean_crossing_ns(std::int64_t bytes) const {
  Wide sum = 0, count = 0;
  for (const auto& [link, links] : link_classes_) {
    const Wide one = Wide{busy_for(bytes, link.bytes_per_second, link.overhead_ns)};
    sum += (one + link.latency_ns) * links;
    count += links;
  }
  return count == 0 ? 0 : static_cast<std::int64_t>(sum / count);
}

std::int64_t Problem::least_crossing_ns(std::int64_t bytes) const {
  std::optional<std::int64_t> least;
  for (const auto& [link, links] : link_classes_) {
    const std::int64_t one =
        busy_for(bytes, link.bytes_per_second, link.overhead_ns) + link.latency_ns;
    least = std::min(least.value_or(one), one);
  }
  return least.value_or(0);
}

}  // namespace pardnn
