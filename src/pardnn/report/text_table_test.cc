// Columns line up by characters, and CSV quotes what must be quoted.
#include "pardnn/report/text_table.h"

#include <boost/test/unit_test.hpp>

#include "pardnn/base/error.h"

using namespace pardnn;

BOOST_AUTO_TEST_SUITE(text_table)

BOOST_AUTO_TEST_CASE(the_first_column_is_to_the_left_and_the_others_to_the_right) {
  TextTable table({"device", "peak", "n"});
  table.add({"d0", "1.5 MiB", "3"});
  table.add({"d10", "7 B", "128"});
  BOOST_TEST(table.text() ==
             "device     peak    n\n"
             "d0      1.5 MiB    3\n"
             "d10         7 B  128\n");
}

// é is two bytes and one character.
BOOST_AUTO_TEST_CASE(width_is_counted_in_characters) {
  TextTable table({"a", "b"});
  table.add({"é", "1"});
  table.add({"xx", "2"});
  BOOST_TEST(table.text() == "a   b\né   1\nxx  2\n");
}

BOOST_AUTO_TEST_CASE(lines_do_not_end_with_spaces) {
  TextTable table({"a", "b"});
  table.add({"x", ""});
  BOOST_TEST(table.text() == "a  b\nx\n");
}

BOOST_AUTO_TEST_CASE(csv_quotes_commas_quotes_and_line_ends) {
  TextTable table({"graph", "what"});
  table.add({"a,b", "say \"no\""});
  table.add({"two\nlines", "plain"});
  BOOST_TEST(table.csv() == "graph,what\n\"a,b\",\"say \"\"no\"\"\"\n\"two\nlines\",plain\n");
}

BOOST_AUTO_TEST_CASE(a_row_has_as_many_words_as_the_head) {
  TextTable table({"a", "b"});
  BOOST_CHECK_THROW(table.add({"x"}), BrokenPromise);
}

BOOST_AUTO_TEST_SUITE_END()
