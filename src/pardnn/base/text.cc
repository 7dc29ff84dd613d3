#include "pardnn/base/text.h"

#include <cstdint>
#include <cstring>

namespace pardnn {
namespace {

constexpr std::size_t kMostShown = 80;  // bytes of a text in a message

// Length of the well-formed UTF-8 sequence that the text starts with; 0 when there is none.
// Overlong forms, surrogates and values beyond U+10FFFF are not well-formed.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t n) { return static_cast<unsigned char>(text[n]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t n = 1; n < length; ++n) {
    if ((byte(n) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string shown = "\"";
  while (!text.empty()) {
    if (shown.size() > kMostShown) {
      shown += "…";
      break;
    }
    const std::size_t length = sequence_length(text);
    const unsigned char first = static_cast<unsigned char>(text[0]);
    if (length == 0 || first < 0x20 || first == 0x7F || first == '"' || first == '\\') {
      shown += {'\\', 'x', kHex[first >> 4], kHex[first & 15]};
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown + '"';
}

// A byte below 0x20 borrows into its high bit, 0x7F carries into it, and above it is set. A borrow
// or carry from a neighbour happens only where that neighbour tells by itself.
bool is_printable_ascii(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  std::uint64_t found = 0, eight;
  const char* at = text.data();
  std::size_t left = text.size();
  const auto look = [&] { found |= ((eight - 0x20 * kOnes) & ~eight) | (eight + kOnes) | eight; };
  for (; left >= sizeof eight; at += sizeof eight, left -= sizeof eight) {
    std::memcpy(&eight, at, sizeof eight);
    look();
  }
  eight = 0x20 * kOnes;
  if (left > 0) std::memcpy(&eight, at, left);
  look();
  return (found & 0x80 * kOnes) == 0;
}

std::optional<std::size_t> first_not_utf8(std::string_view text) {
  if (is_printable_ascii(text)) return std::nullopt;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

}  // namespace pardnn
