#include "pardnn/check/check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "pardnn/check/memory.h"
#include "pardnn/check/replay.h"

namespace pardnn {

namespace {

using checking::Replay;

class Checker {
 public:
  Checker(const Problem& problem, const Plan& plan, std::size_t limit)
      : problem_(problem), graph_(problem.graph()), plan_(plan), limit_(limit) {}

  std::vector<std::string> run() {
    check_shape();
    if (!found_.empty()) return found_;
    check_places();
    check_groups();
    check_sequences();
    check_transfers();
    if (!found_.empty()) return found_;
    const auto replayed = checking::replay(problem_, plan_);
    if (!replayed.replay) {
      report(replayed.problem);
      return found_;
    }
    compare_times(*replayed.replay);
    compare_transfers(*replayed.replay);
    compare_totals(*replayed.replay);
    compare_peaks(*replayed.replay);
    return found_;
  }

 private:
  void report(std::string sentence) {
    if (found_.size() < limit_) found_.push_back(std::move(sentence));
  }
  std::string key(OpId op) const { return std::string(graph_.key(op)); }
  std::string key(VariableId variable) const { return std::string(graph_.key(variable)); }
  const std::string& name(DeviceId device) const { return problem_.machine().devices[device].name; }

  template <class Number>
  void compare(const std::string& what, Number stated, Number right) {
    if (stated != right) {
      report(what + ": the plan says " + std::to_string(stated) + ", it is " +
             std::to_string(right));
    }
  }

  void check_shape() {
    const auto rows = [&](const char* what, std::size_t stated, std::size_t right) {
      compare(std::string("number of ") + what, stated, right);
    };
    rows("placed ops", plan_.placement.ops.size(), graph_.ops().size());
    rows("placed variables", plan_.placement.variables.size(), graph_.variables().size());
    rows("start times", plan_.prediction.start_ns.size(), graph_.ops().size());
    rows("sequences", plan_.sequences.size(), problem_.device_count());
    rows("peaks", plan_.prediction.peaks.size(), problem_.device_count());
  }

  // Whether a device or its kind is among these names.
  bool is_named(DeviceId device, const std::vector<std::string>& names) const {
    const Device& row = problem_.machine().devices[device];
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& one) { return one == row.name || one == row.kind; });
  }

  // A graph of the one kind `any` states costs for devices of every kind (rule X4).
  bool has_cost(OpId op, const std::string& kind) const {
    auto column = graph_.find_kind(kind);
    if (!column && graph_.kinds().size() == 1 && graph_.name(KindId{0}) == "any")
      column = KindId{0};
    return column && graph_.cost(op, *column).is_allowed();
  }

  void check_pins(const std::string& what, const Pins& pins, DeviceId device) {
    if (!pins.on.empty() && !is_named(device, pins.on)) {
      report(what + " is on " + name(device) + " and may only be on " + pins.on.front() +
             (pins.on.size() > 1 ? " and others it names" : ""));
    }
    if (is_named(device, pins.avoid)) {
      report(what + " is on " + name(device) + " and must not be there");
    }
  }

  bool exists(DeviceId device) const { return index(device) < problem_.device_count(); }

  void check_places() {
    for (const OpId op : graph_.ops()) {
      const auto device = plan_.placement.ops[op];
      if (graph_.is_every(op)) {
        if (device) report("op " + key(op) + " is an `every` op and is on " + name(*device));
        continue;
      }
      if (!device || !exists(*device)) {
        report("op " + key(op) + " is on no device");
        continue;
      }
      if (!has_cost(op, problem_.machine().devices[*device].kind)) {
        report("op " + key(op) + " is on " + name(*device) + ", whose kind it has no cost for");
      }
      check_pins("op " + key(op), graph_.pins(op), *device);
    }
    for (const VariableId variable : graph_.variables()) {
      const DeviceId device = plan_.placement.variables[variable];
      if (!exists(device)) {
        report("variable " + key(variable) + " is on no device");
        continue;
      }
      check_pins("variable " + key(variable), graph_.pins(variable), device);
    }
  }

  void check_groups() {
    Table<GroupId, std::optional<DeviceId>> device_of(graph_.groups().size());
    const auto join = [&](const std::string& what, std::optional<GroupId> group, DeviceId device) {
      if (!group || !exists(device)) return;
      auto& together = device_of[*group];
      if (!together) {
        together = device;
        check_pins("group " + std::string(graph_.name(*group)), graph_.pins(*group), device);
      } else if (*together != device) {
        report("group " + std::string(graph_.name(*group)) + " is split: " + what + " is on " +
               name(device) + ", others are on " + name(*together));
      }
    };
    for (const OpId op : graph_.ops()) {
      if (plan_.placement.ops[op])
        join("op " + key(op), graph_.group(op), *plan_.placement.ops[op]);
    }
    for (const VariableId variable : graph_.variables()) {
      join("variable " + key(variable), graph_.group(variable),
           plan_.placement.variables[variable]);
    }
  }

  void check_sequences() {
    Table<OpId, int> times(graph_.ops().size(), 0);
    for (const DeviceId device : problem_.devices()) {
      std::optional<OpId> before;
      for (const OpId op : plan_.sequences[device]) {
        if (index(op) >= graph_.ops().size()) {
          report("the sequence of " + name(device) + " holds an op that the graph has not");
          continue;
        }
        ++times[op];
        if (plan_.placement.ops[op] != device) {
          report("op " + key(op) + " is in the sequence of " + name(device) +
                 " and is not placed there");
        }
        if (problem_.rules().given_order && before && *graph_.at(*before) > *graph_.at(op)) {
          report("op " + key(op) + " comes after " + key(*before) +
                 " in a sequence, against the given order");
        }
        before = op;
      }
    }
    for (const OpId op : graph_.ops()) {
      const int expected = graph_.is_every(op) ? 0 : 1;
      if (times[op] != expected) {
        report("op " + key(op) + " is " + std::to_string(times[op]) +
               " times in the sequences, it must be " + std::to_string(expected));
      }
    }
  }

  // That every stated transfer speaks of ops and devices there are, in the order that a prediction
  // promises; what it says of them is compared later.
  void check_transfers() {
    const auto place = [](const Transfer& transfer) {
      return std::tuple(transfer.start_ns, transfer.producer, !transfer.output.has_value(),
                        transfer.output.value_or(0), transfer.to);
    };
    const Transfer* before = nullptr;
    for (const Transfer& stated : plan_.prediction.transfers) {
      if (index(stated.producer) >= graph_.ops().size()) {
        report("there is a transfer of an op that the graph has not");
        continue;
      }
      if (!exists(stated.from) || !exists(stated.to)) {
        report("there is a transfer of op " + key(stated.producer) +
               " from or to a device that the machine has not");
        continue;
      }
      if (before != nullptr && place(stated) < place(*before)) {
        report(describe(stated) + " is listed after a later one");
      }
      before = &stated;
    }
  }

  void compare_times(const Replay& replay) {
    for (const OpId op : graph_.ops()) {
      compare("start of op " + key(op) + " in ns", plan_.prediction.start_ns[op],
              replay.start_ns[op]);
    }
    // Under first-come dispatch the sequences are what came out, not what was asked for.
    for (const DeviceId device : problem_.devices()) {
      if (plan_.sequences[device] != replay.sequences[device]) {
        report("the sequence of " + name(device) + " is not the order in which its ops start");
      }
    }
  }

  std::string describe(const Transfer& transfer) const {
    return "transfer of " +
           (transfer.output ? "output " + std::to_string(*transfer.output) + " of "
                            : "the control edge from ") +
           key(transfer.producer) + " to " + name(transfer.to);
  }

  void compare_transfers(const Replay& replay) {
    using Name = std::tuple<OpId, std::optional<std::uint32_t>, DeviceId>;
    std::map<Name, Transfer> right;
    for (const Transfer& transfer : replay.transfers) {
      right.emplace(Name{transfer.producer, transfer.output, transfer.to}, transfer);
    }
    for (const Transfer& stated : plan_.prediction.transfers) {
      const auto found = right.find({stated.producer, stated.output, stated.to});
      if (found == right.end()) {
        report(describe(stated) + ": nobody there reads it, or it is listed twice");
        continue;
      }
      const std::string what = describe(stated);
      if (stated.from != found->second.from) report(what + " leaves from the wrong device");
      compare(what + ", bytes", stated.bytes, found->second.bytes);
      compare(what + ", request in ns", stated.request_ns, found->second.request_ns);
      compare(what + ", start in ns", stated.start_ns, found->second.start_ns);
      compare(what + ", arrival in ns", stated.arrival_ns, found->second.arrival_ns);
      right.erase(found);
    }
    for (const auto& [name, transfer] : right) report(describe(transfer) + " is missing");
  }

  void compare_totals(const Replay& replay) {
    compare("step in ns", plan_.prediction.step_ns, replay.step_ns);
    compare("bytes sent", plan_.prediction.bytes_sent, replay.bytes_sent);
    compare("step of the score in ns", plan_.score.step_ns, replay.step_ns);
    compare("bytes sent of the score", plan_.score.bytes_sent, replay.bytes_sent);
    if (plan_.bound_ns > replay.step_ns) {
      report("the bound, " + std::to_string(plan_.bound_ns) + " ns, is above the step, " +
             std::to_string(replay.step_ns) + " ns");
    }
  }

  void compare_peaks(const Replay& replay) {
    const auto right = checking::peaks(problem_, plan_.placement, replay);
    std::int64_t overflow = 0;
    for (const DeviceId device : problem_.devices()) {
      const Peak& stated = plan_.prediction.peaks[device];
      compare("peak of " + name(device) + " in bytes", stated.bytes, right[device].bytes);
      compare("moment of the peak of " + name(device) + " in ns", stated.at_ns,
              right[device].at_ns);
      compare("any-timing peak of " + name(device) + " in bytes", stated.any_timing_bytes,
              right[device].any_timing_bytes);
      const std::int64_t counted =
          problem_.rules().any_timing ? right[device].any_timing_bytes : right[device].bytes;
      const Device& row = problem_.machine().devices[device];
      const std::int64_t margin =
          row.capacity_bytes / 1000 * problem_.rules().margin_per_mille +
          row.capacity_bytes % 1000 * problem_.rules().margin_per_mille / 1000;
      overflow += std::max<std::int64_t>(0, counted - (row.capacity_bytes - margin));
    }
    compare("overflow in bytes", plan_.score.overflow_bytes, overflow);
  }

  const Problem& problem_;
  const Graph& graph_;
  const Plan& plan_;
  const std::size_t limit_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check(const Problem& problem, const Plan& plan, std::size_t limit) {
  return Checker(problem, plan, limit).run();
}

}  // namespace pardnn
