// JSON with messages: what is wrong is named by its path and its place.
#include "pardnn/io/json.h"

#include <string>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/base/quantity.h"

using namespace pardnn;

namespace {

const boost::json::value& sample() {
  static const boost::json::value value = parse_json(
      R"({"text": "a", "number": 7, "yes": true, "list": [1, 2], "size": "3KiB",
          "inner": {"deep": "x"}, "big": 1e300, "less": -4})",
      "s");
  return value;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(json)

BOOST_AUTO_TEST_CASE(members_are_read_by_name_and_kind) {
  const JsonObject object(sample(), "s", "");
  BOOST_TEST(object.text("text") == "a");
  BOOST_TEST(object.text("none", "otherwise") == "otherwise");
  BOOST_TEST(object.integer("number") == 7);
  BOOST_TEST(object.integer("none", 5) == 5);
  BOOST_TEST(object.boolean("yes", false));
  BOOST_TEST(object.boolean("none", true));
  BOOST_TEST(object.array("list").size() == 2u);
  BOOST_TEST(object.object("inner").text("deep") == "x");
  BOOST_TEST(object.quantity("size", parse_bytes, "bytes") == 3 * 1024);
  BOOST_TEST(object.quantity("number", parse_bytes, "bytes") == 7);
}

BOOST_AUTO_TEST_CASE(what_is_of_another_kind_is_named_by_its_path) {
  const JsonObject object(sample(), "s", "devices[2]");
  const auto refusal = [&](auto act) { return message_of([&] { act(object); }); };
  BOOST_TEST(refusal([](auto& o) { o.text("number"); }) ==
             "s: devices[2].number: found 7, expected a text");
  BOOST_TEST(refusal([](auto& o) { o.text("none"); }) ==
             "s: devices[2].none: found nothing, expected a value");
  BOOST_TEST(refusal([](auto& o) { o.integer("text"); }) ==
             "s: devices[2].text: found \"a\", expected an integer");
  BOOST_TEST(refusal([](auto& o) { o.integer("big"); }) ==
             "s: devices[2].big: found 1E300, expected an integer");
  BOOST_TEST(refusal([](auto& o) { o.boolean("number", true); }) ==
             "s: devices[2].number: found 7, expected true or false");
  BOOST_TEST(refusal([](auto& o) { o.array("inner"); }) ==
             "s: devices[2].inner: found an object, expected a list");
  BOOST_TEST(refusal([](auto& o) { o.object("list"); }) ==
             "s: devices[2].list: found a list, expected an object");
  BOOST_TEST(refusal([](auto& o) { o.quantity("text", parse_bytes, "bytes"); }) ==
             "s: devices[2].text: found \"a\", expected bytes");
  BOOST_TEST(refusal([](auto& o) { o.quantity("less", parse_bytes, "bytes"); }) ==
             "s: devices[2].less: found -4, expected bytes");
  BOOST_TEST(refusal([](auto& o) { o.object("inner").text("flat"); }) ==
             "s: devices[2].inner.flat: found nothing, expected a value");
  BOOST_TEST(refusal([](auto& o) { o.object("inner").only({"shallow", "flat"}); }) ==
             "s: devices[2].inner.deep: found a member of this name, expected only shallow, flat");
}

BOOST_AUTO_TEST_CASE(a_text_that_is_not_json_is_refused_at_its_line) {
  const auto refusal = [](const char* text) { return message_of([&] { parse_json(text, "f"); }); };
  BOOST_TEST(refusal("{\n\"a\": 1,\n\"b\" 2}").starts_with("f:3: found "));
  BOOST_TEST(refusal("{} {}").starts_with("f:1: found "));
  BOOST_TEST(refusal("{\n").starts_with("f:2: found "));
  BOOST_TEST(refusal("").ends_with(", expected JSON"));
  BOOST_TEST(refusal(" {} \n\n") == "nothing was refused");
}

BOOST_AUTO_TEST_CASE(a_long_value_is_cut_in_messages) {
  BOOST_TEST(describe(boost::json::string(100, 'x')) == "\"" + std::string(36, 'x') + "...");
}

BOOST_AUTO_TEST_CASE(lists_of_plain_values_stay_on_one_line) {
  const auto value =
      parse_json(R"({"a":[1,"b",null],"c":{"d":[]},"e":[{"f":{}}],"g":[[1],[2]]})", "s");
  const std::string text =
      "{\n"
      "  \"a\": [1, \"b\", null],\n"
      "  \"c\": {\n"
      "    \"d\": []\n"
      "  },\n"
      "  \"e\": [\n"
      "    {\n"
      "      \"f\": {}\n"
      "    }\n"
      "  ],\n"
      "  \"g\": [\n"
      "    [1],\n"
      "    [2]\n"
      "  ]\n"
      "}\n";
  BOOST_TEST(format_json(value) == text);
  BOOST_TEST((parse_json(text, "s") == value));
}

BOOST_AUTO_TEST_SUITE_END()
