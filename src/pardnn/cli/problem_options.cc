#include "pardnn/cli/problem_options.h"

#include <algorithm>
#include <iterator>

#include "pardnn/base/integers.h"
#include "pardnn/base/quantity.h"
#include "pardnn/cli/graph_wishes.h"
#include "pardnn/io/machine_presets.h"

namespace pardnn::cli {

std::int64_t bytes_of(std::string_view option, std::string_view text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) reject(option, text, "a size such as 700MiB or 16GB");
  return *bytes;
}

std::vector<std::int64_t> sizes_of(std::string_view option, std::string_view text) {
  std::vector<std::int64_t> sizes;
  while (true) {
    const std::size_t comma = text.find(',');
    sizes.push_back(bytes_of(option, text.substr(0, comma)));
    if (comma == std::string_view::npos) return sizes;
    text = text.substr(comma + 1);
  }
}

std::int64_t ns_of(std::string_view option, std::string_view text) {
  const auto ns = parse_ns(text);
  if (!ns) reject(option, text, "a time such as 5us or 2s");
  return *ns;
}

std::int64_t integer_of(std::string_view option, std::string_view text, std::int64_t least,
                        std::int64_t most) {
  const auto number = parse_integer(text);
  if (!number || *number < least || *number > most) {
    reject(option, text,
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *number;
}

std::vector<Option> joined(std::vector<Option> first, std::vector<Option> second) {
  std::move(second.begin(), second.end(), std::back_inserter(first));
  return first;
}

namespace {

std::string machine_help() {
  std::string names;
  for (const std::string_view name : machine_preset_names()) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return "instead of the options below a machine file, or one of\n" + names;
}

// As much as no plan of the graph can pass: everything at once, and each tensor is on a device
// once.
std::int64_t room_for_all_of(const Graph& graph) {
  std::int64_t bytes = 1, workspace_bytes = 0;
  for (const TensorId tensor : graph.tensors()) {
    bytes = saturating_add(bytes, graph.tensor(tensor).bytes.value_or(0));
  }
  for (const VariableId variable : graph.variables()) {
    bytes = saturating_add(bytes, graph.bytes(variable).value_or(0));
  }
  for (const OpId op : graph.ops()) {
    workspace_bytes = std::max(workspace_bytes, graph.workspace_bytes(op));
  }
  return saturating_add(bytes, workspace_bytes);
}

}  // namespace

std::vector<Option> MachineOptions::table() {
  return {
      {"--machine", "FILE|NAME", machine_help(),
       [this](std::string_view text) { machine_path = text; }},
      {"--devices", "N", "number of equal devices",
       [this](std::string_view text) {
         devices = integer_of("--devices", text, 1, static_cast<std::int64_t>(kMaxDevices));
       }},
      {"--memory", "SIZE[,SIZE...]",
       "memory of each device: 16GiB, or one size per device; without it,\nroom for the whole "
       "graph",
       [this](std::string_view text) { memory_bytes = sizes_of("--memory", text); }},
      {"--bandwidth", "RATE", "of the link between each two devices (12GB/s)",
       [this](std::string_view text) {
         const auto rate = parse_bytes_per_second(text);
         if (!rate || *rate == 0) reject("--bandwidth", text, "a rate such as 12GB/s");
         bytes_per_second = *rate;
       }},
      {"--overhead", "TIME", "for which a transfer holds its link before the bytes (5us)",
       [this](std::string_view text) { overhead_ns = ns_of("--overhead", text); }},
      {"--latency", "TIME", "from leaving the link to arriving (5us)",
       [this](std::string_view text) { latency_ns = ns_of("--latency", text); }},
  };
}

Machine MachineOptions::machine(const Graph& graph) const {
  if (!machine_path.empty()) {
    if (devices || !memory_bytes.empty() || bytes_per_second || overhead_ns || latency_ns) {
      throw UsageError(
          "found --machine together with options that state a machine, expected either");
    }
    return find_machine(machine_path);
  }
  if (memory_bytes.empty() && !devices) {
    throw UsageError("found no machine, expected --machine FILE or --devices N --memory SIZE");
  }
  Machine::Uniform uniform;
  uniform.capacity_bytes = memory_bytes;
  if (memory_bytes.empty()) uniform.capacity_bytes = {room_for_all_of(graph)};
  if (devices && uniform.capacity_bytes.size() == 1) {
    uniform.capacity_bytes.assign(static_cast<std::size_t>(*devices),
                                  uniform.capacity_bytes.front());
  } else if (devices && static_cast<std::size_t>(*devices) != memory_bytes.size()) {
    throw UsageError("--memory: found " + std::to_string(memory_bytes.size()) +
                     " sizes, expected one, or one for each of the " + std::to_string(*devices) +
                     " devices");
  }
  uniform.bytes_per_second = bytes_per_second.value_or(12'000'000'000);
  uniform.overhead_ns = overhead_ns.value_or(5'000);
  uniform.latency_ns = latency_ns.value_or(5'000);
  if (graph.kinds().size() == 1) uniform.kind = graph.name(KindId{0});
  return Machine::uniform(uniform);
}

std::vector<Option> RuleOptions::table() {
  return {
      {"--pin", "REGEX=DEVICE", "ops whose name has a match must be on a device or kind",
       [this](std::string_view text) {
         const std::size_t equals = text.rfind('=');
         if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
           reject("--pin", text, "REGEX=DEVICE");
         }
         pins.emplace_back(text.substr(0, equals), text.substr(equals + 1));
       }},
      {"--group", "REGEX", "ops whose name has a match share a device",
       [this](std::string_view text) { groups.emplace_back(text); }},
      {"--sequence", "free|given|fifo",
       "order of each device's ops: planned, the graph's own, or first come first served",
       [this](std::string_view text) {
         if (text != "free" && text != "given" && text != "fifo") {
           reject("--sequence", text, "free, given or fifo");
         }
         rules.given_order = text == "given";
         rules.dispatch = text == "fifo" ? Dispatch::kFifo : Dispatch::kSequence;
       }},
      {"--contention", "on|off", "whether transfers wait for their link (on)",
       [this](std::string_view text) {
         if (text != "on" && text != "off") reject("--contention", text, "on or off");
         rules.contention = text == "on";
       }},
      {"--margin", "PER_MILLE", "of each device's memory, left free (0)",
       [this](std::string_view text) {
         rules.margin_per_mille = integer_of("--margin", text, 0, 999);
       }},
      {"--guarantee", "any-timing", "fit the memory whatever the ops' real times",
       [this](std::string_view text) {
         if (text != "any-timing") reject("--guarantee", text, "any-timing");
         rules.any_timing = true;
       }},
  };
}

std::shared_ptr<const Graph> RuleOptions::apply(std::shared_ptr<const Graph> graph) const {
  if (pins.empty() && groups.empty()) return graph;
  return with_wishes(*graph, pins, groups);
}

}  // namespace pardnn::cli
