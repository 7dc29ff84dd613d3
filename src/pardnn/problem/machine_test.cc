// What a machine must be, and what the command line's machine is.
#include "pardnn/problem/machine.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/error.h"

namespace pardnn {
namespace {

std::string refusal(const Machine& machine) {
  try {
    machine.validate();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

BOOST_AUTO_TEST_SUITE(machine)

BOOST_AUTO_TEST_CASE(a_uniform_machine_has_a_channel_for_every_ordered_pair) {
  const Machine machine = Machine::uniform({.capacity_bytes = {5, 6, 7}, .overhead_ns = 3});
  BOOST_TEST(machine.devices.size() == 3u);
  BOOST_TEST(machine.devices[DeviceId{2}].name == "d2");
  BOOST_TEST(machine.devices[DeviceId{2}].capacity_bytes == 7);
  BOOST_TEST(machine.channels.size() == 6u);
  BOOST_TEST(!machine.link(DeviceId{1}, DeviceId{1}));
  BOOST_TEST(machine.link(DeviceId{0}, DeviceId{1})->overhead_ns == 3);
  BOOST_TEST(index(machine.link(DeviceId{0}, DeviceId{1})->channels.front()) == 0u);
  BOOST_TEST(index(machine.link(DeviceId{1}, DeviceId{0})->channels.front()) == 2u);
  BOOST_TEST(index(*machine.find("d1")) == 1u);
  BOOST_TEST(!machine.find("d3"));
}

BOOST_AUTO_TEST_CASE(machines_that_make_no_sense_are_refused) {
  const auto change = [](auto edit) {
    Machine machine = Machine::uniform({.capacity_bytes = {5, 6}});
    edit(machine);
    return refusal(machine);
  };
  BOOST_TEST(refusal(Machine{}) == "machine: found no device, expected at least one");
  BOOST_TEST(change([](Machine& m) { m.devices[DeviceId{1}].name = "d0"; }) ==
             "machine uniform: found device d0 twice, expected names that differ");
  BOOST_TEST(change([](Machine& m) { m.devices[DeviceId{1}].reserve_bytes = 7; }) ==
             "machine uniform: found a reserve of 7 bytes on device d1, expected at most its "
             "capacity, 6");
  BOOST_TEST(change([](Machine& m) { m.links[1]->bytes_per_second = 0; }) ==
             "machine uniform: found a bandwidth of link d0->d1 of 0, expected at least 1 and less "
             "than 2^62");
  BOOST_TEST(change([](Machine& m) { m.links[1]->channels.clear(); }) ==
             "machine uniform: found link d0->d1 without a channel");
  BOOST_TEST(change([](Machine& m) { m.links[1]->channels = {ChannelId{9}}; }) ==
             "machine uniform: found link d0->d1 on a channel that the machine has not");
  BOOST_TEST(change([](Machine& m) { m.granularity_bytes = 0; }) ==
             "machine uniform: found a granularity of 0, expected at least 1 and less than 2^62");
  BOOST_CHECK_THROW(Machine::uniform({.capacity_bytes = std::vector<std::int64_t>(129, 1)}), Error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
