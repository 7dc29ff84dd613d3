// A machine with more devices of its last sort.
#include "pardnn/problem/more_devices.h"

#include <boost/test/unit_test.hpp>

namespace pardnn {
namespace {

BOOST_AUTO_TEST_SUITE(more_devices)

BOOST_AUTO_TEST_CASE(a_uniform_machine_grows_into_a_uniform_machine) {
  const Machine grown =
      with_more_devices(Machine::uniform({.capacity_bytes = {5, 5}, .overhead_ns = 3}), 2);
  const Machine wanted = Machine::uniform({.capacity_bytes = {5, 5, 5, 5}, .overhead_ns = 3});
  BOOST_TEST(grown.channels.size() == 12u);
  for (const DeviceId from : wanted.devices.ids()) {
    BOOST_TEST(grown.devices[from].name == wanted.devices[from].name);
    BOOST_TEST(grown.devices[from].capacity_bytes == 5);
    for (const DeviceId to : wanted.devices.ids()) {
      if (from == to) continue;
      BOOST_TEST(grown.link(from, to)->costs_like(*wanted.link(from, to)));
      BOOST_TEST(grown.channels[grown.link(from, to)->channels.front()] ==
                 wanted.channels[wanted.link(from, to)->channels.front()]);
    }
  }
}

// d0 and d1 send over one channel: so does the new one, but between it and d1 there is another.
BOOST_AUTO_TEST_CASE(shared_channels_stay_shared) {
  Machine machine = Machine::uniform({.capacity_bytes = {5, 6}});
  for (auto& link : machine.links) {
    if (link) link->channels = {ChannelId{0}};
  }
  const Machine grown = with_more_devices(machine, 1);
  const DeviceId d0{0}, d1{1}, d2{2};
  BOOST_TEST(grown.devices[d2].capacity_bytes == 6);
  BOOST_TEST((grown.link(d0, d2)->channels == machine.link(d0, d1)->channels));
  BOOST_TEST((grown.link(d2, d0)->channels == machine.link(d0, d1)->channels));
  BOOST_TEST((grown.link(d1, d2)->channels != machine.link(d0, d1)->channels));
}

BOOST_AUTO_TEST_CASE(one_device_gets_neighbours) {
  const Machine grown = with_more_devices(Machine::uniform({.capacity_bytes = {5}}), 1);
  BOOST_TEST(grown.devices[DeviceId{1}].name == "d1");
  BOOST_TEST(grown.link(DeviceId{0}, DeviceId{1})->bytes_per_second == 12'000'000'000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
