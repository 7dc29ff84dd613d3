// Texts in messages, and what counts as UTF-8.
#include "pardnn/base/text.h"

#include <boost/test/unit_test.hpp>

#include "pardnn/base/interner.h"

using namespace pardnn;

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(a_quoted_text_stays_on_one_line) {
  BOOST_TEST(quoted("mm_1") == "\"mm_1\"");
  BOOST_TEST(quoted("a\nb\"c\xFF") == "\"a\\x0Ab\\x22c\\xFF\"");
  BOOST_TEST(quoted("größe") == "\"größe\"");
}

BOOST_AUTO_TEST_CASE(a_long_text_is_cut) {
  BOOST_TEST(quoted(std::string(200, 'a')) == '"' + std::string(80, 'a') + "…\"");
}

BOOST_AUTO_TEST_CASE(utf8_knows_overlong_forms_and_surrogates) {
  BOOST_TEST(!first_not_utf8("plain, größe, 漢字, \xF0\x9F\x98\x80"));
  BOOST_TEST(first_not_utf8("ab\xFF").value() == 2);
  BOOST_TEST(first_not_utf8("a\xC0\x80").value() == 1);         // overlong NUL
  BOOST_TEST(first_not_utf8("\xED\xA0\x80").value() == 0);      // a surrogate
  BOOST_TEST(first_not_utf8("\xF4\x90\x80\x80").value() == 0);  // beyond U+10FFFF
  BOOST_TEST(first_not_utf8("abc\xE6\xBC").value() == 3);       // cut short
}

BOOST_AUTO_TEST_CASE(printable_ascii_is_told_byte_by_byte) {
  for (std::size_t size = 0; size < 20; ++size) {
    const std::string text(size, ' ');
    BOOST_TEST(is_printable_ascii(text));
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string other = text;
        other[at] = static_cast<char>(byte);
        if (is_printable_ascii(other) != (byte >= 0x20 && byte <= 0x7E)) {
          BOOST_ERROR("byte " << byte << " at " << at << " of " << size);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_interner_numbers_texts_by_first_sight) {
  Interner texts;
  BOOST_TEST(!texts.find("a"));
  BOOST_TEST(texts.intern("a") == 0);
  BOOST_TEST(texts.intern("") == 1);
  BOOST_TEST(texts.intern("a") == 0);
  BOOST_TEST(texts.find("").value() == 1);
  BOOST_TEST(texts[0] == "a");
}

BOOST_AUTO_TEST_CASE(an_interner_keeps_views_while_it_grows) {
  Interner texts;
  texts.intern("first");
  const std::string_view kept = texts[0];
  for (int n = 0; n < 100'000; ++n) texts.intern("text " + std::to_string(n));
  BOOST_TEST(kept == "first");
  BOOST_TEST(texts.find("text 99999").value() == 100'000);
  BOOST_TEST(texts.size() == 100'001);
  const std::string large(1 << 20, 'x');
  BOOST_TEST(texts[texts.intern(large)] == large);
}

BOOST_AUTO_TEST_SUITE_END()
