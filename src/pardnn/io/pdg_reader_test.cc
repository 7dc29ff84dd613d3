// The .pdg format: what a file says, its canonical form, and every way in which a file is refused.
#include "pardnn/io/pdg_reader.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/io/pdg_writer.h"

using namespace pardnn;

namespace {

// x and w feed a product; a bias is added in place; an update reads the gradient.
//
//     x (every) --+                 +--> grad --> step (modifies w, v)
//                 +--> mm --> act --+--> loss (fetched)
//     w ..> rw ---+        (in place)
constexpr std::string_view kWritten =
    "pdg 1\n"
    "about costs=measured source=a%20test\n"
    "# forward\n"
    "kind gpu cpu\n"
    "\n"
    "group tail not=cpu\n"
    "op loss Loss 5us,9us < act ^rw > 4* ph=f\n"
    "var w 4MiB @weights\n"
    "var v 4MiB @weights on=gpu\n"
    "op x Input 0 > 1.5MiB every=1 name=batch%20x\n"
    "op rw Read 0,0 < w > =0 @weights ph=f\n"
    "  op   mm MatMul 120us,2ms < x:0 rw ^x ^rw > 2MiB 8 ws=512KiB @tail flops=33554432 ph=f \n"
    "op act Relu 8us,40us < !mm mm:1 > =0 @tail\n"
    "op grad MatMulGrad 240us,4ms < act loss x > 4MiB =2/64 1MiB~0 ph=b x-b=2 x-a=%25\n"
    "op step Adam 30us,- < grad !w !v ^rw ^grad @weights ph=u moved=12MiB on=d1,d0\n";

constexpr std::string_view kCanonical =
    "pdg 1\n"
    "about costs=measured source=a%20test\n"
    "kind gpu cpu\n"
    "group tail not=cpu\n"
    "var v 4194304 @weights on=gpu\n"
    "var w 4194304 @weights\n"
    "op rw Read 0 < w > =0 @weights ph=f\n"
    "op x Input 0 > 1572864 every=1 name=batch%20x\n"
    "op mm MatMul 120000,2000000 < x rw ^rw > 2097152 8 @tail ws=524288 ph=f flops=33554432\n"
    "op act Relu 8000,40000 < !mm mm:1 > =0 @tail\n"
    "op loss Loss 5000,9000 < act ^rw > 4* ph=f\n"
    "op grad MatMulGrad 240000,4000000 < act loss x > 4194304 =2/64 1048576~0 ph=b x-a=%25 x-b=2\n"
    "op step Adam 30000,- < grad !w !v ^rw ^grad @weights ph=u on=d0,d1 moved=12582912\n";

std::string canonical(std::string_view text) { return write_pdg(*read_pdg(text, "t")); }

// What is said of a file whose second line and those after it are these.
std::string message_of_file(std::string_view text) {
  return message_of([&] { read_pdg(text, "t"); });
}
std::string message(std::string_view lines) {
  return message_of_file("pdg 1\n" + std::string(lines) + "\n");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pdg)

BOOST_AUTO_TEST_CASE(a_file_has_one_canonical_form) {
  BOOST_TEST(canonical(kWritten) == kCanonical);
  BOOST_TEST(canonical(kCanonical) == kCanonical);
}

BOOST_AUTO_TEST_CASE(the_last_line_needs_no_line_feed) {
  BOOST_TEST(canonical("pdg 1\nop a T 0") == "pdg 1\nop a T 0\n");
  BOOST_TEST(canonical("pdg 1") == "pdg 1\n");
}

BOOST_AUTO_TEST_CASE(the_kind_any_goes_without_saying) {
  BOOST_TEST(canonical("pdg 1\nkind any\n") == "pdg 1\n");
  BOOST_TEST(canonical("pdg 1\nkind cpu\n") == "pdg 1\nkind cpu\n");
}

BOOST_AUTO_TEST_CASE(unknown_costs_and_sizes_are_kept) {
  constexpr std::string_view text =
      "pdg 1\n"
      "kind gpu cpu\n"
      "var w ? @g\n"
      "op a T ?,5 < w > ? =0 ?~0 @g\n"
      "op b T - < a a:1 > =0 =1/8\n"
      "op c T ?\n";
  BOOST_TEST(canonical(text) == text);
}

BOOST_AUTO_TEST_CASE(about_lines_are_kept_as_read) {
  constexpr std::string_view text = "pdg 1\nabout b=1 a==%0A,:\nabout empty=\n";
  const auto graph = read_pdg(text, "t");
  BOOST_TEST(graph->about().size() == 3);
  BOOST_TEST(graph->about()[1].second == "=\n,:");
  BOOST_TEST(write_pdg(*graph) == text);
}

BOOST_AUTO_TEST_CASE(keys_with_what_the_format_uses_are_encoded) {
  constexpr std::string_view text =
      "pdg 1\n"
      "op %21a T 0 > 4\n"
      "op a%3A0 T%2C 0 < %21a !b%20%25%2Cc ^%21a > =1 @g%3Dh name==,:%20%25\n"
      "op b%20%25%2Cc T 0 > 4 @g%3Dh\n";
  const auto graph = read_pdg(text, "t");
  BOOST_TEST(graph->find_op("!a").has_value());
  const auto op = graph->find_op("a:0");
  BOOST_REQUIRE(op);
  BOOST_TEST(graph->type(*op) == "T,");
  BOOST_TEST(graph->name(graph->group(*op).value()) == "g=h");
  BOOST_TEST(graph->notes(*op).name.value() == "=,: %");
  BOOST_TEST(graph->find_op("b %,c").has_value());
  BOOST_TEST(canonical(write_pdg(*graph)) == write_pdg(*graph));
  BOOST_TEST(write_pdg(*graph).find("op a%3A0 T%2C 0 < %21a !b%20%25%2Cc ^%21a > =1 @g%3Dh "
                                    "name==,:%20%25\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_given_order_is_kept) {
  constexpr std::string_view text = "pdg 1\nop b T 0 at=0\nop c T 0 at=10\n";
  BOOST_TEST(canonical(text) == text);
  BOOST_TEST(read_pdg(text, "t")->has_given_order());
}

BOOST_AUTO_TEST_CASE(the_first_line_names_the_format) {
  BOOST_TEST(message_of_file("") == "t:1:1: found an empty file, expected pdg 1");
  BOOST_TEST(message_of_file("op a T 0\n") == "t:1:1: found \"op a T 0\", expected pdg 1");
  BOOST_TEST(message_of_file("pdg 2\n") ==
             "t:1:5: found version \"2\", expected 1, the version that this pardnn reads");
  BOOST_TEST(message_of_file("\xEF\xBB\xBFpdg 1\n") ==
             "t:1:1: found a byte order mark, expected pdg 1");
  BOOST_TEST(message_of_file("pdg 1\r\n") ==
             "t:1:6: found a carriage return, expected lines that end with a line feed alone");
}

BOOST_AUTO_TEST_CASE(a_file_is_meant_as_one_of_ours_when_its_first_record_says_so) {
  for (const std::string_view text :
       {"", "pdg 1\n", "pdg 2\nop", "# a comment\n\n  pdg 1", "\xEF\xBB\xBFpdg 1\r\n", "pdg"}) {
    BOOST_TEST(is_meant_as_pdg(text), text);
  }
  for (const std::string_view text : {"{\"nodes\": []}", "# RUN: x\nnode {\n", "pdgraph {}",
                                      "digraph pdg {}", "\x08\x07", "op a T 0"}) {
    BOOST_TEST(!is_meant_as_pdg(text), text);
  }
}

BOOST_AUTO_TEST_CASE(tabs_controls_and_other_encodings_are_refused) {
  BOOST_TEST(message("op a T\t0") == "t:2:7: found a tab, expected spaces between words");
  BOOST_TEST(message("op a T 0\r") ==
             "t:2:9: found a carriage return, expected lines that end with a line feed alone");
  BOOST_TEST(message("# \x07") ==
             "t:2:3: found the byte 0x07, expected text without control characters");
  BOOST_TEST(message("op gr\xF6\xDF"
                     "e T 0") == "t:2:6: found the byte 0xF6, expected UTF-8 text");
  BOOST_TEST(message("op größe T 0") == "nothing was refused");
}

BOOST_AUTO_TEST_CASE(a_line_has_at_most_one_mebibyte) {
  BOOST_TEST(message("#" + std::string(1048575, 'x')) == "nothing was refused");
  BOOST_TEST(message("#" + std::string(1048576, 'x')) ==
             "t:2:1: found a line of 1048577 bytes, expected at most 1 MiB, 1048576 bytes");
}

BOOST_AUTO_TEST_CASE(records_are_told_by_their_first_word) {
  BOOST_TEST(message("node a T 0") ==
             "t:2:1: found \"node\", expected about, kind, group, var, op or a comment");
  BOOST_TEST(message("op") == "t:2:3: found the end of the line, expected the key of an op");
  BOOST_TEST(message("op a") == "t:2:5: found the end of the line, expected the type of the op");
  BOOST_TEST(message("op a T ") == "t:2:8: found the end of the line, expected the cost of the op");
  BOOST_TEST(message("var") == "t:2:4: found the end of the line, expected the key of a variable");
  BOOST_TEST(message("var w") ==
             "t:2:6: found the end of the line, expected the size of the "
             "variable in bytes, or ?");
  BOOST_TEST(message("group") == "t:2:6: found the end of the line, expected the name of a group");
  BOOST_TEST(message("kind") ==
             "t:2:5: found the end of the line, expected the name of a kind of "
             "device");
  BOOST_TEST(message("about") == "t:2:6: found the end of the line, expected KEY=TEXT");
  BOOST_TEST(message("about costs") == "t:2:7: found \"costs\", expected KEY=TEXT");
}

BOOST_AUTO_TEST_CASE(keys_are_checked_letter_by_letter) {
  BOOST_TEST(message("op ^a T 0") ==
             "t:2:4: found \"^a\", expected a key, which starts with none of ^!@<>#?\"");
  BOOST_TEST(message("op a:b T 0") == "t:2:5: found \":\" in \"a:b\", expected %3A in its place");
  BOOST_TEST(message("op a% T 0") == "t:2:5: found \"%\", expected % and two of 0-9 A-F");
  BOOST_TEST(message("op a%3a T 0") == "t:2:5: found \"%3a\", expected % and two of 0-9 A-F");
  BOOST_TEST(message("op a%41 T 0") ==
             "t:2:5: found \"%41\", expected %XX only for what cannot stand as it is");
  BOOST_TEST(message("op a%21 T 0") ==
             "t:2:5: found \"%21\", expected %XX only for what cannot stand as it is");
  BOOST_TEST(message("op a T,U 0") == "t:2:7: found \",\" in \"T,U\", expected %2C in its place");
  BOOST_TEST(message("kind a=b") == "t:2:7: found \"=\" in \"a=b\", expected %3D in its place");
  BOOST_TEST(message("op a T 0 name=%2") == "t:2:15: found \"%2\", expected % and two of 0-9 A-F");
}

BOOST_AUTO_TEST_CASE(costs_are_times) {
  constexpr std::string_view expected =
      ", expected a time below 2^62 ns such as 12000, 12us or 1.5ms, - (not allowed) or ? "
      "(unknown)";
  BOOST_TEST(message("op a T 5KB") == "t:2:8: found \"5KB\"" + std::string(expected));
  BOOST_TEST(message("kind a b\nop a T 5,-1") == "t:3:10: found \"-1\"" + std::string(expected));
  BOOST_TEST(message("op a T 5,") == "t:2:10: found \"\"" + std::string(expected));
  BOOST_TEST(message("op a T 0.5") == "t:2:8: found \"0.5\"" + std::string(expected));
  BOOST_TEST(message("op a T 4611686018427387904") ==
             "t:2:8: found \"4611686018427387904\"" + std::string(expected));
  BOOST_TEST(message("op a T 5,6") == "t:2:4: found 2 costs of op \"a\", expected one");
  BOOST_TEST(message("op a T 5,6\nkind x y z") ==
             "t:2:4: found 2 costs of op \"a\", expected one, or 3, one per kind");
}

BOOST_AUTO_TEST_CASE(sizes_are_bytes) {
  constexpr std::string_view expected =
      ", expected a size below 2^62 bytes such as 4096, 4KiB or 1.5MB";
  BOOST_TEST(message("op a T 0 > 4us") == "t:2:12: found \"4us\"" + std::string(expected));
  BOOST_TEST(message("op a T 0 > *") == "t:2:12: found \"\"" + std::string(expected));
  BOOST_TEST(message("var w -4") == "t:2:7: found \"-4\"" + std::string(expected));
  BOOST_TEST(message("op a T 0 ws=1.5") == "t:2:13: found \"1.5\"" + std::string(expected));
  BOOST_TEST(message("op a T 0 ws=?") == "t:2:13: found \"?\"" + std::string(expected));
  BOOST_TEST(message("op a T 0 flops=1KB") ==
             "t:2:16: found \"1KB\", expected an integer below 2^62");
}

BOOST_AUTO_TEST_CASE(inputs_name_ops_outputs_and_variables) {
  BOOST_TEST(message("op a T 0 < b") ==
             "t:2:12: found input \"b\" of op \"a\", expected the key of an op or a variable");
  BOOST_TEST(message("op a T 0 < ^b") ==
             "t:2:12: found control edge ^\"b\" of op \"a\", expected the key of an op");
  BOOST_TEST(
      message("var w 4 @g\nop a T 0 < ^w @g") ==
      "t:3:12: found control edge ^\"w\" of op \"a\" from a variable, expected the key of an "
      "op");
  BOOST_TEST(message("op b T 0 > 4\nop a T 0 < b b:1") ==
             "t:3:14: found output 1 of op \"b\" as an input of op \"a\", expected at most 0");
  BOOST_TEST(message("op b T 0\nop a T 0 < b") ==
             "t:3:12: found output 0 of op \"b\" as an input of op \"a\", expected an op that has "
             "outputs");
  BOOST_TEST(message("var w 4 @g\nop a T 0 < w:1 @g") ==
             "t:3:12: found output 1 of variable \"w\" as an input of op \"a\", expected the "
             "variable itself");
  BOOST_TEST(message("op a T 0 < b:x") == "t:2:14: found \"x\", expected the number of an output");
  BOOST_TEST(message("op a T 0 < b:") == "t:2:14: found \"\", expected the number of an output");
  BOOST_TEST(message("op a T 0 < ^b:1") ==
             "t:2:14: found \":\" in \"b:1\", expected %3A in its place");
  BOOST_TEST(message("op a T 0 < ^!b") ==
             "t:2:13: found \"!b\", expected a key, which starts with none of ^!@<>#?\"");
  BOOST_TEST(message("op a T 0 < > 4") ==
             "t:2:10: found < without an input, expected at least one after it");
  BOOST_TEST(message("op a T 0 >") ==
             "t:2:10: found > without an output, expected at least one after it");
}

BOOST_AUTO_TEST_CASE(outputs_refer_to_data_inputs) {
  const std::string input = "op b T 0 > 4 @g\n";
  BOOST_TEST(message(input + "op a T 0 < b ^b > 4 =1") ==
             "t:3:21: found =1 of op \"a\", expected the number of a data input, at most 0");
  BOOST_TEST(message("op a T 0 > =0") ==
             "t:2:12: found =0 of op \"a\", expected no such output: the op has no data inputs");
  BOOST_TEST(message(input + "op a T 0 < b > 4~7") ==
             "t:3:16: found ~7 of op \"a\", expected the number of a data input, at most 0");
  BOOST_TEST(message(input + "op a T 0 < !b > 4~0 @g") ==
             "t:3:17: found ~0 of op \"a\", an input that the op modifies, expected an input that "
             "it only reads");
  BOOST_TEST(message(input + "op a T 0 < b > =x") ==
             "t:3:17: found \"x\", expected the number of a data input");
  BOOST_TEST(message(input + "op a T 0 < b > =0~0") ==
             "t:3:17: found \"0~0\", expected the number of a data input");
}

BOOST_AUTO_TEST_CASE(attributes_are_known_and_given_once) {
  BOOST_TEST(message("op a T 0 colour=red") ==
             "t:2:10: found \"colour=red\", expected @GROUP, ws=, ph=, on=, not=, flops=, moved=, "
             "every=, at=, name= or x-…=");
  BOOST_TEST(message("op a T 0 fast") == "t:2:10: found \"fast\", expected an attribute of an op");
  BOOST_TEST(message("op a T 0 ws=1 ws=1") ==
             "t:2:15: found \"ws=1\" as a second one of its name, expected each attribute at most "
             "once");
  BOOST_TEST(message("op a T 0 @g @h") ==
             "t:2:13: found \"@h\" as a second one of its name, expected each attribute at most "
             "once");
  BOOST_TEST(message("op a T 0 x-a=1 x-a=1") ==
             "t:2:16: found \"x-a\" a second time, expected each attribute at most once");
  BOOST_TEST(message("op a T 0 ph=x") == "t:2:13: found \"x\", expected f, b or u");
  BOOST_TEST(message("op a T 0 every=0") == "t:2:16: found \"0\", expected 1");
  BOOST_TEST(message("op a T 0 at=-1") == "t:2:13: found \"-1\", expected an integer below 2^62");
  BOOST_TEST(message("op a T 0 on=") == "t:2:13: found \"\", expected a key");
  BOOST_TEST(message("op a T 0 @") == "t:2:11: found \"\", expected a key");
  BOOST_TEST(message("var w 4 ws=5") ==
             "t:2:9: found \"ws=5\", expected @GROUP, on=, not=, name= or x-…=");
  BOOST_TEST(message("group g name=x") == "t:2:9: found \"name=x\", expected on=, not=");
  BOOST_TEST(message("op b T 0 > 4\nop a T 0 > 4 < b") ==
             "t:3:14: found < behind >, expected inputs before outputs");
}

BOOST_AUTO_TEST_CASE(names_are_given_once) {
  BOOST_TEST(message("op a T 0\nvar a 4") ==
             "t:3:5: found variable \"a\", expected a key of its own: an earlier op on line 2 has "
             "this one");
  BOOST_TEST(message("var a 4\nop a T 0") ==
             "t:3:4: found op \"a\", expected a key of its own: an earlier variable on line 2 has "
             "this one");
  BOOST_TEST(message("group g on=a\nop a T 0 @g\ngroup g") ==
             "t:4:7: found group \"g\", expected a name of its own: an earlier group on line 2 has "
             "this one");
  BOOST_TEST(message("kind a\nkind b") ==
             "t:3:1: found kinds of device a second time, expected them at most once");
  BOOST_TEST(message("kind a b a") ==
             "t:2:1: found kind \"a\" twice, expected kinds of different names");
}

BOOST_AUTO_TEST_CASE(breaches_of_the_model_name_line_and_column) {
  BOOST_TEST(message("op a T 0 < b > 4\nop b T 0 < a > 4") ==
             "t:2:4: found a cycle \"a\" -> \"b\" -> \"a\", expected ops that do not wait for "
             "themselves");
  BOOST_TEST(message("var w 4 @g\nop a T 0 < w") ==
             "t:3:12: found op \"a\" of no group touching variable \"w\" of group \"g\", expected "
             "both in one group");
  BOOST_TEST(message("op b T 0 > 4\nop a T 0 < ^b !b > =0 @g") ==
             "t:3:15: found op \"a\" of group \"g\" modifying a buffer of op \"b\" of no group, "
             "expected both in one group");
  BOOST_TEST(message("op a T 0 > 4\nop c T 0 < a every=1") ==
             "t:3:12: found op \"a\" as an input of every op \"c\", expected outputs of every ops "
             "only");
  BOOST_TEST(message("op c T 0 every=1 ws=4") ==
             "t:2:4: found workspace of every op \"c\", expected none on an op of every device");
  BOOST_TEST(message("op c T 0 every=1 on=gpu") ==
             "t:2:4: found a pin of every op \"c\", expected none on an op of every device");
  BOOST_TEST(message("op c T 0 every=1 at=1") ==
             "t:2:4: found a place in the given order of every op \"c\", expected none on an op of "
             "every device");
  BOOST_TEST(message("op a T 0 at=1\nop c T 0") ==
             "t:3:4: found op \"c\" without at, expected at for every ordinary op, as others have "
             "it");
  BOOST_TEST(message("var w 4000000000GB\nvar v 4000000000GB") ==
             "t: found variables whose sizes sum to 2^62 or more, expected sums below 2^62");
}

BOOST_AUTO_TEST_SUITE_END()
