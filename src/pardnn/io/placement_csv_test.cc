// Placements as CSV, read and written.
// (What is refused is in tests/bad_inputs/plans.txt.)
#include "pardnn/io/placement_csv.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/io/pdg_reader.h"

using namespace pardnn;

namespace {

constexpr DeviceId d0{0}, d1{1};

// v and r are a group; `k` is on every device.
const Problem& problem() {
  static const Problem problem(read_pdg("pdg 1\n"
                                        "var v 20 @g\n"
                                        "var lone 8\n"
                                        "op a%20b T 10 > 5\n"
                                        "op k Const 0 > 4 every=1\n"
                                        "op r Read 0 < v > =0 @g\n",
                                        "g"),
                               Machine::uniform({.capacity_bytes = {100, 100}}));
  return problem;
}

std::string refusal(const std::string& text) {
  return message_of([&] { read_placement(text, "p.csv", problem()); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(placement_csv)

BOOST_AUTO_TEST_CASE(one_line_of_a_group_is_enough) {
  const Placement placement =
      read_placement("key,device\n# comment\n\nr,d1\r\na%20b,d0\nlone,d1\n", "p.csv", problem());
  const Graph& graph = problem().graph();
  BOOST_TEST((placement.ops[*graph.find_op("r")] == d1));
  BOOST_TEST((placement.ops[*graph.find_op("a b")] == d0));
  BOOST_TEST(!placement.ops[*graph.find_op("k")].has_value());
  BOOST_TEST((placement.variables[*graph.find_variable("v")] == d1));
  BOOST_TEST((placement.variables[*graph.find_variable("lone")] == d1));
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_again) {
  const std::string text = "key,device\nlone,d0\nv,d1\na%20b,d0\nr,d1\n";
  BOOST_TEST(write_placement(problem(), read_placement(text, "p.csv", problem())) == text);
}

BOOST_AUTO_TEST_CASE(lines_may_repeat_and_must_agree) {
  BOOST_TEST(refusal("v,d1\nr,d1\na%20b,d0\nlone,d0\n") == "nothing was refused");
  BOOST_TEST(refusal("v,d1\nr,d0\n") ==
             "p.csv:2: found r,d0, expected r on d1, as stated before for it or for its group");
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named) {
  BOOST_TEST(refusal("r,d1\nlone,d0\n") == "p.csv: found no device of a%20b, expected one for all");
  BOOST_TEST(refusal("") == "p.csv: found no device of a%20b, expected one for all");
}

BOOST_AUTO_TEST_SUITE_END()
