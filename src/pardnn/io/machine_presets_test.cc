// Machines by name: each is a machine, and a name that is not one is answered with those that are.
#include "pardnn/io/machine_presets.h"

#include <algorithm>
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"

using namespace pardnn;

BOOST_AUTO_TEST_SUITE(machine_presets)

// Rule T9: where a link is missing, some placements are not allowed; presets have all.
BOOST_AUTO_TEST_CASE(every_preset_is_a_machine_whose_devices_reach_each_other) {
  const auto names = machine_preset_names();
  BOOST_TEST(names.size() >= 8);
  BOOST_TEST(std::is_sorted(names.begin(), names.end()));
  for (const std::string_view name : names) {
    const Machine machine = find_machine(std::string(name));
    BOOST_TEST(!machine.name.empty());
    BOOST_TEST(machine.devices.size() >= 2);
    for (const DeviceId from : machine.devices.ids()) {
      for (const DeviceId to : machine.devices.ids()) {
        BOOST_TEST((from == to || machine.link(from, to).has_value()), name);
      }
    }
  }
}

// Rule T5. Cards 0 and 1 are behind one switch, 4 behind the other: what leaves card 0 shares its
// lanes, and between the switches also theirs.
BOOST_AUTO_TEST_CASE(links_between_two_switches_share_what_joins_them) {
  const Machine machine = find_machine("pcie-8");
  const auto channels = [&](std::uint32_t from, std::uint32_t to) {
    std::string names;
    for (const ChannelId channel : machine.link(DeviceId{from}, DeviceId{to})->channels) {
      names += machine.channels[channel] + "; ";
    }
    return names;
  };
  BOOST_TEST(channels(0, 1) == "gpu0 out; gpu1 in; ");
  BOOST_TEST(channels(0, 4) == "gpu0 out; gpu4 in; switch0 up; switch1 down; ");
  BOOST_TEST(channels(5, 1) == "gpu5 out; gpu1 in; switch0 down; switch1 up; ");
}

// 16 devices, and between hosts the slower link although the rule for all comes first.
BOOST_AUTO_TEST_CASE(hosts_are_joined_by_slower_links_than_their_devices) {
  const Machine machine = find_machine("hosts-4x4");
  BOOST_TEST(machine.devices.size() == 16);
  BOOST_TEST(machine.link(DeviceId{0}, DeviceId{3})->bytes_per_second == 80'000'000'000);
  BOOST_TEST(machine.link(DeviceId{3}, DeviceId{4})->bytes_per_second == 10'000'000'000);
}

BOOST_AUTO_TEST_CASE(an_unknown_name_is_answered_with_all_names) {
  BOOST_TEST(message_of([] { find_machine("pcie-5"); }) ==
             "machine: found pcie-5, which is no file, expected a machine file or one of gpu-host, "
             "hosts-2x4, hosts-4x4, nvlink-4, nvlink-8, pcie-4, pcie-8, v100-t4");
}

BOOST_AUTO_TEST_CASE(what_looks_like_a_path_is_read_as_a_file) {
  BOOST_TEST(message_of([] { find_machine("./pcie-4"); }).starts_with("./pcie-4"));
  BOOST_TEST(message_of([] { find_machine("pcie-4.json"); }).starts_with("pcie-4.json"));
}

BOOST_AUTO_TEST_SUITE_END()
