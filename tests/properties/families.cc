// Every row keeps its promises on every family of graphs, for few and many devices, on an even and
// on an uneven machine.
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/random.h"
#include "pardnn/graph/copy.h"
#include "pardnn/graph/generate.h"

#include "tests/properties/machines.h"
#include "tests/properties/trials.h"

namespace pardnn::properties {
namespace {

constexpr std::array<std::size_t, 5> kDevices{1, 2, 3, 8, 16};
constexpr std::size_t kSeeds = 5;
constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
constexpr std::int64_t kGranularity = 256;

// One problem of the grid families x devices x machines x seeds.
struct Setting {
  explicit Setting(std::size_t number) {
    seed = number % kSeeds;
    number /= kSeeds;
    is_even = number % 2 == 0;
    number /= 2;
    devices = kDevices[number % kDevices.size()];
    family = &families()[number / kDevices.size()];
    Random random(seed * 1'000 + devices);
    graph = family->make(15 + random.below(60), seed);
  }
  static std::size_t count() { return families().size() * kDevices.size() * 2 * kSeeds; }

  // Kinds gpu and cpu are on the uneven machine only, from two devices on.
  bool can_run() const { return family->name != "kinds" || (!is_even && devices > 1); }

  Machine machine(std::int64_t capacity_bytes) const {
    return is_even ? even_machine(devices, capacity_bytes)
                   : uneven_machine(devices, capacity_bytes, kGranularity);
  }

  std::string name() const {
    return std::string(family->name) + ", " + std::to_string(devices) + " devices, " +
           (is_even ? "even" : "uneven") + ", seed " + std::to_string(seed);
  }

  const Family* family = nullptr;
  std::shared_ptr<const Graph> graph;
  std::size_t devices = 0;
  bool is_even = true;
  std::uint64_t seed = 0;
};

// So many per mille of the share, for each device, of what one device would need.
std::int64_t scarce_bytes(const Setting& setting, std::int64_t least_per_mille,
                          std::int64_t most_per_mille) {
  const Problem problem(setting.graph, setting.machine(kPlenty));
  const auto share = one_device_bytes(problem) / static_cast<std::int64_t>(setting.devices) + 1'000;
  Random random(setting.seed);
  return share / 1'000 * random.between(least_per_mille, most_per_mille);
}

// `at` by id for every op: a program's order.
std::shared_ptr<const Graph> with_given_order(const Graph& graph) {
  GraphBuilder builder;
  copy_head(graph, builder);
  for (const GroupId group : graph.groups()) builder.group(graph.name(group), graph.pins(group));
  for (const VariableId variable : graph.variables()) builder.variable(spec_of(graph, variable));
  for (const OpId op : graph.ops()) {
    OpSpec spec = spec_of(graph, op);
    if (!graph.is_every(op)) spec.at = index(op);
    builder.op(spec);
  }
  return builder.build();
}

Findings try_rules(const Setting& setting, std::shared_ptr<const Graph> graph,
                   std::int64_t capacity_bytes, const Rules& rules) {
  Findings findings(setting.name());
  const Problem problem(std::move(graph), setting.machine(capacity_bytes), rules);
  expect_sound_rows(findings, problem, setting.seed);
  return findings;
}

BOOST_AUTO_TEST_SUITE(properties_of_families)

BOOST_AUTO_TEST_CASE(with_plenty_of_memory) {
  run_trials("plenty of memory", Setting::count(), [](std::size_t number) {
    const Setting setting(number);
    if (!setting.can_run()) return Findings("");
    return try_rules(setting, setting.graph, kPlenty, {});
  });
}

BOOST_AUTO_TEST_CASE(with_less_memory_than_a_share_of_one_device) {
  run_trials("scarce memory", Setting::count(), [](std::size_t number) {
    const Setting setting(number);
    if (!setting.can_run() || setting.seed > 1) return Findings("");
    return try_rules(setting, setting.graph, scarce_bytes(setting, 500, 1'000), {});
  });
}

BOOST_AUTO_TEST_CASE(with_some_more_memory_than_a_share_of_one_device) {
  run_trials("little memory", Setting::count(), [](std::size_t number) {
    const Setting setting(number);
    if (!setting.can_run() || setting.seed != 2) return Findings("");
    return try_rules(setting, setting.graph, scarce_bytes(setting, 1'000, 2'000),
                     {.margin_per_mille = 30});
  });
}

BOOST_AUTO_TEST_CASE(with_each_other_rule) {
  run_trials("other rules", Setting::count(), [](std::size_t number) {
    const Setting setting(number);
    if (!setting.can_run() || (setting.devices != 2 && setting.devices != 8)) return Findings("");
    const std::int64_t bytes = scarce_bytes(setting, 1'000, 2'000);
    switch (setting.seed) {
      case 0:
        return try_rules(setting, setting.graph, bytes, {.dispatch = Dispatch::kFifo});
      case 1:
        return try_rules(setting, setting.graph, bytes, {.contention = false});
      case 2:
        return try_rules(setting, setting.graph, bytes, {.any_timing = true});
      case 3:
        return try_rules(setting, with_given_order(*setting.graph), bytes, {.given_order = true});
      default:
        return try_rules(setting, setting.graph, bytes,
                         {.dispatch = Dispatch::kFifo, .contention = false});
    }
  });
}

BOOST_AUTO_TEST_CASE(plans_are_the_same_every_time_and_in_any_order_of_lines) {
  run_trials("repeated", Setting::count(), [](std::size_t number) {
    const Setting setting(number);
    if (!setting.can_run() || setting.seed != 3) return Findings("");
    Findings findings(setting.name());
    const std::int64_t bytes =
        setting.devices % 2 == 0 ? scarce_bytes(setting, 1'000, 2'000) : kPlenty;
    const Problem problem(setting.graph, setting.machine(bytes));
    for (const char* row : {"auto", "pardnn", "etf"}) {
      expect_repeatable(findings, problem, row, setting.seed);
    }
    return findings;
  });
}

// Three of each: the time that 2000 of them take is better spent on the tangles below.
BOOST_AUTO_TEST_CASE(the_simulator_is_right_about_plans_that_no_planner_would_make) {
  run_trials("random plans", Setting::count(), [](std::size_t number) {
    const Setting setting(number);
    if (!setting.can_run()) return Findings("");
    Findings findings(setting.name());
    const Problem problem(setting.graph, setting.machine(kPlenty));
    for (std::uint64_t n = 0; n < 3; ++n) {
      expect_sound_random_plan(findings, problem, 10 * setting.seed + n);
    }
    return findings;
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn::properties
