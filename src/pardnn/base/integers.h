// Integers that say when they overflow, and the one division that transfers need.
#pragma once

#include <cstdint>
#include <optional>

namespace pardnn {

inline constexpr std::int64_t kMaxQuantity = (std::int64_t{1} << 62) - 1;  // times and bytes

inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// For sums of many quantities, each at most kMaxQuantity: what passes it stays there.
inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a + b < kMaxQuantity ? a + b : kMaxQuantity;
}

// Nanoseconds that `bytes` need at `bytes_per_second`, rounded up, computed in 128 bits (rule N3).
// Nothing when the answer is beyond kMaxQuantity. bytes_per_second > 0.
inline std::optional<std::int64_t> transfer_ns(std::int64_t bytes, std::int64_t bytes_per_second) {
  __extension__ using Wide = unsigned __int128;
  const Wide numerator = static_cast<Wide>(bytes) * 1'000'000'000u;
  const Wide rate = static_cast<Wide>(bytes_per_second);
  const Wide ns = (numerator + rate - 1) / rate;
  if (ns > static_cast<Wide>(kMaxQuantity)) return std::nullopt;
  return static_cast<std::int64_t>(ns);
}

// The least multiple of `step` that is >= value. value >= 0, step >= 1.
inline std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace pardnn
