#include "pardnn/base/quantity.h"

#include <array>
#include <span>
#include <utility>

#include "pardnn/base/integers.h"

namespace pardnn {
namespace {

__extension__ using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  std::int64_t size;
};

constexpr std::array<Unit, 9> kByteUnits{{{"", 1},
                                          {"KiB", std::int64_t{1} << 10},
                                          {"MiB", std::int64_t{1} << 20},
                                          {"GiB", std::int64_t{1} << 30},
                                          {"TiB", std::int64_t{1} << 40},
                                          {"KB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000},
                                          {"TB", 1'000'000'000'000}}};
constexpr std::array<Unit, 5> kTimeUnits{
    {{"", 1}, {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Appends a decimal digit to the value; false when it no longer fits.
bool append_digit(Wide& value, char digit) {
  return !__builtin_mul_overflow(value, Wide{10}, &value) &&
         !__builtin_add_overflow(value, static_cast<Wide>(digit - '0'), &value);
}

// DIGITS[.DIGITS]UNIT. With a fraction the value is (all digits) * unit / 10^(digits after the
// point), which must come out whole.
std::optional<std::int64_t> parse(std::string_view text, std::span<const Unit> units) {
  Wide value = 0, divisor = 1;
  std::size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (!append_digit(value, text[at])) return std::nullopt;
  }
  if (at == 0) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    const std::size_t first = ++at;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (!append_digit(value, text[at]) || !append_digit(divisor, '0')) return std::nullopt;
    }
    if (at == first) return std::nullopt;
  }
  for (const Unit& unit : units) {
    if (text.substr(at) != unit.name) continue;
    if (__builtin_mul_overflow(value, static_cast<Wide>(unit.size), &value)) return std::nullopt;
    if (value % divisor != 0 || value / divisor > static_cast<Wide>(kMaxQuantity)) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value / divisor);
  }
  return std::nullopt;
}

// Three digits of value / size, rounded to nearest, without zeros that say nothing; nothing when
// that is as much as the next larger unit.
std::optional<std::string> format_in(std::int64_t value, std::int64_t size, std::int64_t limit) {
  std::int64_t decimals = 2, scale = 100;
  const std::int64_t whole = value / size;
  if (whole >= 10) decimals = 1, scale = 10;
  if (whole >= 100) decimals = 0, scale = 1;
  const std::int64_t rounded = static_cast<std::int64_t>(
      (static_cast<Wide>(value) * static_cast<Wide>(scale) * 2 + static_cast<Wide>(size)) /
      (static_cast<Wide>(size) * 2));
  if (limit > 0 && rounded / scale >= limit) return std::nullopt;
  std::string text = std::to_string(rounded / scale);
  std::string fraction = std::to_string(scale + rounded % scale).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  if (decimals > 0 && !fraction.empty()) text += "." + fraction;
  return text;
}

std::string format(std::int64_t value, std::span<const Unit> units) {
  for (std::size_t n = 0;; ++n) {
    const bool last = n + 1 == units.size();
    const std::int64_t limit = last ? 0 : units[n + 1].size / units[n].size;
    if (const auto text = format_in(value, units[n].size, limit)) {
      return *text + ' ' + std::string(units[n].name);
    }
  }
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) { return parse(text, kByteUnits); }

std::optional<std::int64_t> parse_ns(std::string_view text) { return parse(text, kTimeUnits); }

std::optional<std::int64_t> parse_bytes_per_second(std::string_view text) {
  if (text.ends_with("/s")) return parse(text.substr(0, text.size() - 2), kByteUnits);
  return parse_integer(text);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.find('.') != std::string_view::npos) return std::nullopt;
  return parse(text, std::span(kByteUnits).first(1));
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<Unit, 6> kUnits{{{"B", 1},
                                        {"KiB", std::int64_t{1} << 10},
                                        {"MiB", std::int64_t{1} << 20},
                                        {"GiB", std::int64_t{1} << 30},
                                        {"TiB", std::int64_t{1} << 40},
                                        {"PiB", std::int64_t{1} << 50}}};
  if (bytes < 0) return '-' + format_bytes(-bytes);
  return format(bytes, kUnits);
}

std::string format_ns(std::int64_t ns) {
  constexpr std::array<Unit, 4> kUnits{
      {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
  if (ns < 0) return '-' + format_ns(-ns);
  return format(ns, kUnits);
}

std::string exact_bytes(std::int64_t bytes) {
  for (const auto& [name, shift] : {std::pair("GiB", 30), {"MiB", 20}, {"KiB", 10}}) {
    const std::int64_t unit = std::int64_t{1} << shift;
    if (bytes != 0 && bytes % unit == 0) return std::to_string(bytes / unit) + name;
  }
  return std::to_string(bytes);
}

std::int64_t roundly_above(std::int64_t bytes) {
  constexpr std::int64_t kLeastUnits = 64;
  for (const std::int64_t unit : {std::int64_t{1} << 20, std::int64_t{1} << 10}) {
    if (bytes >= kLeastUnits * unit) return (bytes + unit - 1) / unit * unit;
  }
  return bytes;
}

}  // namespace pardnn
