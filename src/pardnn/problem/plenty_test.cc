#include "pardnn/problem/plenty.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/io/pdg_reader.h"

namespace pardnn {
namespace {

// A variable of 100 bytes, tensors of 40 and 30, workspaces of 5 and 20: at most 190 bytes at once.
bool is_plenty_with(std::int64_t bytes, std::int64_t reserve_bytes = 0) {
  Machine machine = Machine::uniform({.capacity_bytes = {1000, bytes}});
  machine.devices[DeviceId{1}].reserve_bytes = reserve_bytes;
  return memory_is_plenty(Problem(read_pdg("pdg 1\n"
                                           "var w 100 @w\n"
                                           "op a Op 1us < w > 40 ws=5 @w\n"
                                           "op b Op 1us < a > 30 ws=20\n",
                                           "story"),
                                  machine, {}));
}

BOOST_AUTO_TEST_SUITE(plenty)

BOOST_AUTO_TEST_CASE(all_bytes_and_the_largest_workspace_on_the_smallest_device) {
  BOOST_TEST(is_plenty_with(190));
  BOOST_TEST(!is_plenty_with(189));
}

BOOST_AUTO_TEST_CASE(the_reserve_is_not_there_for_it) {
  BOOST_TEST(is_plenty_with(200, 10));
  BOOST_TEST(!is_plenty_with(199, 10));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace pardnn
