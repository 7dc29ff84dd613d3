// The hash names what a graph means, not how its file is written.
#include "pardnn/io/graph_hash.h"

#include <boost/test/unit_test.hpp>

#include "pardnn/io/pdg_reader.h"

using namespace pardnn;

namespace {

std::string hash(std::string_view lines) {
  return graph_hash(*read_pdg("pdg 1\n" + std::string(lines), "t"));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(graph_hash_)

// sha256sum of "pdg 1\nop a T 0 > 4\nop b T 5 < a\n", taken with coreutils.
BOOST_AUTO_TEST_CASE(it_is_sha256_of_the_canonical_text) {
  BOOST_TEST(hash("op a T 0 > 4\nop b T 5 < a\n") ==
             "518640a27086f38f929563e8330cb7cb54992823c95b3456557ed2aa05f36826");
}

BOOST_AUTO_TEST_CASE(the_order_of_lines_and_the_way_of_writing_do_not_count) {
  BOOST_TEST(hash("op b T 5 < a\n# a comment\n\nop   a T 0us > 4\n") ==
             hash("op a T 0 > 4\nop b T 5 < a:0\n"));
}

BOOST_AUTO_TEST_CASE(what_is_kept_for_people_does_not_count) {
  BOOST_TEST(hash("about costs=measured\nop a T 0 name=first x-note=1\nvar w 4 name=weight\n") ==
             hash("op a T 0\nvar w 4\n"));
}

BOOST_AUTO_TEST_CASE(what_a_planner_sees_counts) {
  const std::string plain = hash("op a T 0 > 4\n");
  for (const char* other : {"op a T 1 > 4\n", "op a U 0 > 4\n", "op b T 0 > 4\n", "op a T 0 > 5\n",
                            "op a T 0 > 4*\n", "op a T 0 > 4 ph=f\n", "op a T 0 > 4 @g\n",
                            "op a T 0 > 4 on=d0\n", "op a T 0 > 4 every=1\n", "op a T 0 > 4 ws=1\n",
                            "op a T 0 > 4 at=0\n", "kind x\nop a T 0 > 4\n"}) {
    BOOST_TEST(hash(other) != plain, other);
  }
}

BOOST_AUTO_TEST_SUITE_END()
