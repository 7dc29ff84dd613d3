// Sizes, times and rates as people write them: 700MiB, 5us, 12GB/s.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pardnn {

// Each parser takes a whole text and answers nothing when it is not such a quantity, is negative,
// has a fraction that does not come out whole, or is beyond kMaxQuantity.
std::optional<std::int64_t> parse_bytes(std::string_view text);  // 12, 1.5KiB, 3MB, 16GiB
std::optional<std::int64_t> parse_ns(std::string_view text);     // 12, 5us, 1.5ms, 2s
std::optional<std::int64_t> parse_bytes_per_second(std::string_view text);  // 12GB/s, 800MiB/s
std::optional<std::int64_t> parse_integer(std::string_view text);           // digits only

// For people: at most four digits and a unit, 1.46 GiB, 12.3 us.
std::string format_bytes(std::int64_t bytes);
std::string format_ns(std::int64_t ns);

// To be typed: exact, in the largest unit that goes into it, 898MiB, 1200.
std::string exact_bytes(std::int64_t bytes);
// A size not below this one that is short to type: whole MiB, or KiB, unless it is small.
std::int64_t roundly_above(std::int64_t bytes);

}  // namespace pardnn
