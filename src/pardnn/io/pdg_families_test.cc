// Every generated graph obeys the rules of the model and survives being written and read.
#include <boost/test/unit_test.hpp>

#include "pardnn/graph/generate.h"
#include "pardnn/problem/problem.h"
#include "pardnn/io/graph_hash.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"

using namespace pardnn;

BOOST_AUTO_TEST_SUITE(pdg_families)

BOOST_AUTO_TEST_CASE(a_generated_graph_is_read_as_it_was_written) {
  for (const Family& family : families()) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const auto graph = family.make(400, seed);
      const std::string text = write_pdg(*graph);
      const auto again = read_pdg(text, "again");
      BOOST_TEST((write_pdg(*again) == text), family.name);
      BOOST_TEST(graph_hash(*again) == graph_hash(*graph), family.name);
    }
  }
}

// A problem is made only of a graph in which every in-place op has the order that rule M4 asks for.
BOOST_AUTO_TEST_CASE(a_generated_graph_can_be_planned) {
  for (const Family& family : families()) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      Machine machine = Machine::uniform({.capacity_bytes = {1 << 30, 1 << 30}});
      if (family.name == "kinds") {
        machine.devices[DeviceId{0}].kind = "gpu";
        machine.devices[DeviceId{1}].kind = "cpu";
      }
      const auto graph = family.make(400, seed);
      const Problem problem(graph, machine);
      BOOST_TEST(problem.units().size() > 0, family.name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
