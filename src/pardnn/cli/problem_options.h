// The options that state a problem: machine, rules, pins; shared by the commands that plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pardnn/problem/problem.h"
#include "pardnn/cli/options.h"

namespace pardnn::cli {

// Each memory limit may be stated once for all devices or once per device.
struct MachineOptions {
  std::string machine_path;                             // empty: the uniform machine below
  std::optional<std::int64_t> devices;                  // else as many as memory limits
  std::vector<std::int64_t> memory_bytes;               // none: room for the whole graph
  std::optional<std::int64_t> bytes_per_second;         // 12 GB/s
  std::optional<std::int64_t> overhead_ns, latency_ns;  // 5 us each

  std::vector<Option> table();
  // For a graph with costs for one kind of device the uniform machine has devices of that kind.
  Machine machine(const Graph& graph) const;
};

struct RuleOptions {
  Rules rules;
  std::vector<std::pair<std::string, std::string>> pins;  // regular expression, device or kind
  std::vector<std::string> groups;                        // regular expressions

  std::vector<Option> table();
  // The graph with the pins and groups that were asked for.
  std::shared_ptr<const Graph> apply(std::shared_ptr<const Graph> graph) const;
};

std::vector<Option> joined(std::vector<Option> first, std::vector<Option> second);

// Parses the value of an option, or rejects it.
std::int64_t bytes_of(std::string_view option, std::string_view text);
std::vector<std::int64_t> sizes_of(std::string_view option, std::string_view text);  // by commas
std::int64_t integer_of(std::string_view option, std::string_view text, std::int64_t least,
                        std::int64_t most);
std::int64_t ns_of(std::string_view option, std::string_view text);

}  // namespace pardnn::cli
