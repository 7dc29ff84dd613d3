// Machine files: what they state, and that writing and reading gives the same machine.
// (What is refused is in tests/bad_inputs/machines.txt.)
#include "pardnn/io/machine_json.h"

#include <string>

#include <boost/test/unit_test.hpp>

using namespace pardnn;

namespace {

constexpr DeviceId d0{0}, d1{1}, d2{2};

// Three devices; the first two share a bus, the third is reached through a switch by both.
constexpr const char* kFile = R"({
  "pardnn_machine": 1,
  "name": "workshop",
  "about": {"measured": "yesterday"},
  "granularity": "1KiB",
  "devices": [
    {"name": "gpu0", "kind": "gpu", "memory": "16GiB", "reserve": "512MiB"},
    {"name": "gpu1", "kind": "gpu", "memory": 17179869184, "address": "10.0.0.2:4000"},
    {"name": "host", "memory": "64GB"}
  ],
  "channels": ["bus", "switch"],
  "links": [
    {"from": "*", "to": "*", "bandwidth": "1GB/s", "overhead": "5us", "latency": 700},
    {"from": ["gpu0", "gpu1"], "to": ["gpu0", "gpu1"], "bandwidth": "12GB/s", "channels": ["bus"]},
    {"from": "host", "to": ["gpu0", "gpu1"], "bandwidth": "6GB/s", "channels": ["switch", "bus"]}
  ]
})";

bool is_equal(const Machine& a, const Machine& b) { return write_machine(a) == write_machine(b); }

}  // namespace

BOOST_AUTO_TEST_SUITE(machine_json)

BOOST_AUTO_TEST_CASE(a_file_states_devices) {
  const Machine machine = read_machine(kFile, "m");
  BOOST_TEST(machine.name == "workshop");
  BOOST_TEST(machine.granularity_bytes == 1024);
  BOOST_REQUIRE(machine.devices.size() == 3);
  BOOST_TEST(machine.devices[d0].name == "gpu0");
  BOOST_TEST(machine.devices[d0].kind == "gpu");
  BOOST_TEST(machine.devices[d0].capacity_bytes == std::int64_t{16} << 30);
  BOOST_TEST(machine.devices[d0].reserve_bytes == std::int64_t{512} << 20);
  BOOST_TEST(machine.devices[d1].capacity_bytes == std::int64_t{16} << 30);
  BOOST_TEST(machine.devices[d1].address == "10.0.0.2:4000");
  BOOST_TEST(machine.devices[d2].kind == "any");
  BOOST_TEST(machine.devices[d2].capacity_bytes == 64'000'000'000);
}

// Rule T2: what is absent is 0. Later links replace earlier ones.
BOOST_AUTO_TEST_CASE(a_later_link_replaces_an_earlier_one_of_the_same_pair) {
  const Machine machine = read_machine(kFile, "m");
  const Link& to_host = *machine.link(d0, d2);
  BOOST_TEST(to_host.bytes_per_second == 1'000'000'000);
  BOOST_TEST(to_host.overhead_ns == 5'000);
  BOOST_TEST(to_host.latency_ns == 700);
  const Link& between = *machine.link(d1, d0);
  BOOST_TEST(between.bytes_per_second == 12'000'000'000);
  BOOST_TEST(between.overhead_ns == 0);
  BOOST_TEST(between.latency_ns == 0);
  BOOST_TEST(!machine.link(d1, d1).has_value());
}

// Rule T5.
BOOST_AUTO_TEST_CASE(links_share_the_channels_they_name_and_others_have_one_of_their_own) {
  const Machine machine = read_machine(kFile, "m");
  BOOST_TEST((machine.link(d0, d1)->channels == machine.link(d1, d0)->channels));
  // In the order of the channels, whatever the order in the file.
  BOOST_TEST((machine.link(d2, d1)->channels == std::vector{ChannelId{0}, ChannelId{1}}));
  const auto own = machine.link(d0, d2)->channels, other = machine.link(d1, d2)->channels;
  BOOST_REQUIRE(own.size() == 1);
  BOOST_TEST((own != other));
  BOOST_TEST(machine.channels[own.front()] == "gpu0>host");
}

BOOST_AUTO_TEST_CASE(devices_without_links_are_a_machine) {
  const Machine machine = read_machine(
      R"({"pardnn_machine": 1, "devices": [{"name": "a", "memory": 5}, {"name": "b", "memory": 0}]})",
      "m");
  BOOST_TEST(!machine.link(d0, d1).has_value());
  BOOST_TEST(machine.devices[d1].capacity_bytes == 0);
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_again) {
  const Machine file = read_machine(kFile, "m");
  BOOST_TEST(is_equal(read_machine(write_machine(file), "again"), file));
  const Machine uniform = Machine::uniform({.capacity_bytes = {10, 20, 30},
                                            .kind = "tpu",
                                            .bytes_per_second = 7,
                                            .overhead_ns = 8,
                                            .latency_ns = 9,
                                            .granularity_bytes = 4,
                                            .reserve_bytes = 3});
  const Machine again = read_machine(write_machine(uniform), "again");
  BOOST_TEST(is_equal(again, uniform));
  BOOST_TEST(again.link(d2, d0)->latency_ns == 9);
  BOOST_TEST(again.devices[d2].kind == "tpu");
}

BOOST_AUTO_TEST_CASE(two_links_may_share_a_name_made_up_for_a_channel) {
  // The file has a channel that is named as a link's own one would be.
  const Machine machine = read_machine(
      R"({"pardnn_machine": 1, "channels": ["a>b"],
          "devices": [{"name": "a", "memory": 5}, {"name": "b", "memory": 5}],
          "links": [{"from": "*", "to": "*", "bandwidth": "1GB/s"},
                    {"from": "b", "to": "a", "bandwidth": "1GB/s", "channels": ["a>b"]}]})",
      "m");
  BOOST_TEST((machine.link(d0, d1)->channels != machine.link(d1, d0)->channels));
  const Machine again = read_machine(write_machine(machine), "again");
  BOOST_TEST((again.link(d0, d1)->channels != again.link(d1, d0)->channels));
}

BOOST_AUTO_TEST_SUITE_END()
