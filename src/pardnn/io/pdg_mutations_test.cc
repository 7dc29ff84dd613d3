// A file with any one byte changed, missing or doubled is read as a graph or refused with a place.
#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/error.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"

using namespace pardnn;

namespace {

constexpr std::string_view kText =
    "pdg 1\n"
    "about costs=measured\n"
    "kind gpu cpu\n"
    "group g on=d0 not=cpu\n"
    "var w 4KiB @g name=w%20x\n"
    "op x In 0 > 1.5KiB every=1\n"
    "op r Read 0 < w > =0 @g\n"
    "op m Mul 1us,- < x r ^r > 8 ?~1 =1/4* @g ws=2 ph=f flops=3\n"
    "op u Add 2 < !m:0 m:2 > =0 @g moved=5\n"
    "op s Upd 3 < u !w ^r ^m @g ph=u x-a=1\n";

// Nothing when the text is read and written as it should be, or refused as it should be.
std::string complaint(const std::string& text) {
  try {
    const std::string written = write_pdg(*read_pdg(text, "t"));
    if (write_pdg(*read_pdg(written, "t")) != written) return "written in two ways";
  } catch (const Error& error) {
    const std::string message = error.what();
    if (!message.starts_with("t:") || message.find(": found ") == std::string::npos ||
        message.find(", expected ") == std::string::npos) {
      return message;
    }
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pdg_mutations)

BOOST_AUTO_TEST_CASE(the_text_itself_is_a_graph) {
  BOOST_TEST(read_pdg(kText, "t")->ops().size() == 5);
}

BOOST_AUTO_TEST_CASE(one_byte_changed) {
  for (std::size_t at = 0; at < kText.size(); ++at) {
    for (const char byte : std::string_view("0a -=,:/~*!^@<>#?%\n\t\xC3", 21)) {
      std::string text(kText);
      text[at] = byte;
      BOOST_TEST(complaint(text) == "", text);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_byte_missing_or_doubled_and_one_line_missing) {
  for (std::size_t at = 0; at < kText.size(); ++at) {
    std::string text(kText);
    BOOST_TEST(complaint(std::string(text).erase(at, 1)) == "");
    BOOST_TEST(complaint(std::string(text).insert(at, 1, text[at])) == "");
    if (at == 0 || text[at - 1] != '\n') continue;
    BOOST_TEST(complaint(std::string(text).erase(at, text.find('\n', at) + 1 - at)) == "");
  }
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere) {
  for (std::size_t size = 0; size < kText.size(); ++size) {
    BOOST_TEST(complaint(std::string(kText.substr(0, size))) == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
