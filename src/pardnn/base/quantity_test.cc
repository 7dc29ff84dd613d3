// Quantities as people write them, and the texts that are none.
#include "pardnn/base/quantity.h"

#include <boost/test/unit_test.hpp>

using namespace pardnn;

BOOST_AUTO_TEST_SUITE(quantity)

BOOST_AUTO_TEST_CASE(bytes_are_integers_with_or_without_a_unit) {
  BOOST_TEST(parse_bytes("0").value() == 0);
  BOOST_TEST(parse_bytes("3KiB").value() == 3072);
  BOOST_TEST(parse_bytes("3KB").value() == 3000);
  BOOST_TEST(parse_bytes("16GiB").value() == 17179869184);
  BOOST_TEST(parse_bytes("1.5TiB").value() == 1649267441664);  // 1536 GiB
  BOOST_TEST(parse_bytes("2TB").value() == 2'000'000'000'000);
  BOOST_TEST(parse_bytes("2MB").value() == 2000000);
}

BOOST_AUTO_TEST_CASE(a_fraction_must_come_out_whole) {
  BOOST_TEST(parse_bytes("1.5KiB").value() == 1536);
  BOOST_TEST(parse_bytes("0.0009765625KiB").value() == 1);  // 2^-10 exactly
  BOOST_TEST(!parse_bytes("0.1KiB"));                       // 102.4 bytes
  BOOST_TEST(!parse_bytes("1.5"));
  BOOST_TEST(parse_ns("1.5us").value() == 1500);
  BOOST_TEST(!parse_ns("0.5ns"));
  BOOST_TEST(parse_bytes("2.0").value() == 2);
}

BOOST_AUTO_TEST_CASE(times_take_ns_us_ms_s) {
  BOOST_TEST(parse_ns("12").value() == 12);
  BOOST_TEST(parse_ns("12ns").value() == 12);
  BOOST_TEST(parse_ns("5us").value() == 5000);
  BOOST_TEST(parse_ns("2s").value() == 2000000000);
  BOOST_TEST(!parse_ns("5KiB"));
}

BOOST_AUTO_TEST_CASE(rates_are_bytes_per_second) {
  BOOST_TEST(parse_bytes_per_second("12GB/s").value() == 12000000000);
  BOOST_TEST(parse_bytes_per_second("800MiB/s").value() == 838860800);
  BOOST_TEST(parse_bytes_per_second("7").value() == 7);
  BOOST_TEST(!parse_bytes_per_second("12GB"));
  BOOST_TEST(!parse_bytes_per_second("/s"));
}

BOOST_AUTO_TEST_CASE(what_is_no_quantity_is_refused) {
  for (const char* text : {"", " 1", "1 ", "-1", "+1", "1.", ".5", "1..5KiB", "KiB", "1kib", "1e3",
                           "0x10", "1,5KiB", "1 KiB"}) {
    BOOST_TEST(!parse_bytes(text), text);
  }
  BOOST_TEST(!parse_integer("1KiB"));
  BOOST_TEST(!parse_integer("1.0"));
}

BOOST_AUTO_TEST_CASE(quantities_stay_below_two_to_the_62) {
  BOOST_TEST(parse_bytes("4611686018427387903").value() == (std::int64_t{1} << 62) - 1);
  BOOST_TEST(!parse_bytes("4611686018427387904"));
  BOOST_TEST(!parse_bytes("4294967296GiB"));  // 2^32 * 2^30 = 2^62
  BOOST_TEST(!parse_bytes("99999999999999999999999999999999999999999999"));
}

BOOST_AUTO_TEST_CASE(people_see_three_digits_and_a_unit) {
  BOOST_TEST(format_bytes(0) == "0 B");
  BOOST_TEST(format_bytes(1023) == "1023 B");
  BOOST_TEST(format_bytes(1536) == "1.5 KiB");
  BOOST_TEST(format_bytes(17179869184) == "16 GiB");
  BOOST_TEST(format_bytes(1567663063) == "1.46 GiB");  // 1567663063 / 2^30 = 1.45999…
  BOOST_TEST(format_ns(12345) == "12.3 us");
  BOOST_TEST(format_ns(999) == "999 ns");
  BOOST_TEST(format_ns(1000000) == "1 ms");
  BOOST_TEST(format_ns(-1500) == "-1.5 us");
}

BOOST_AUTO_TEST_CASE(rounding_up_to_a_whole_unit_uses_that_unit) {
  BOOST_TEST(format_bytes(1048575) == "1 MiB");  // 1023.999 KiB
  BOOST_TEST(format_ns(999999) == "1 ms");       // 999.999 us
  BOOST_TEST(format_ns(9996) == "10 us");        // 9.996 us
}

BOOST_AUTO_TEST_CASE(sizes_to_be_typed_are_exact) {
  BOOST_TEST(exact_bytes(0) == "0");
  BOOST_TEST(exact_bytes(1'200) == "1200");
  BOOST_TEST(exact_bytes(3 << 10) == "3KiB");
  BOOST_TEST(exact_bytes(std::int64_t{1536} << 20) == "1536MiB");
  BOOST_TEST(exact_bytes(std::int64_t{16} << 30) == "16GiB");
}

BOOST_AUTO_TEST_CASE(large_sizes_are_rounded_up_to_whole_units) {
  BOOST_TEST(roundly_above(64 * 1'024 - 1) == 64 * 1'024 - 1);
  BOOST_TEST(roundly_above(64 * 1'024 + 1) == 65 * 1'024);
  BOOST_TEST(roundly_above((64 << 20) + 1) == 65 << 20);
  BOOST_TEST(roundly_above(65 << 20) == 65 << 20);
}

BOOST_AUTO_TEST_SUITE_END()
