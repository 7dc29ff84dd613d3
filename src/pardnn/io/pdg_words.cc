#include "pardnn/io/pdg_words.h"

#include <array>
#include <charconv>
#include <cstring>

#include "pardnn/base/quantity.h"
#include "pardnn/base/text.h"

namespace pardnn {
namespace {

constexpr std::string_view kNotFirst = "^!@<>#?\"";  // a key does not start with these

// What a byte is to the format.
enum Class : std::uint8_t {
  kPlain = 0,
  kNeverPlain = 1,     // space, controls and %: encoded everywhere
  kNotInKey = 2,       // : = , are encoded in keys
  kNotFirstInKey = 4,  // encoded at the start of a key
};

constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t byte = 0; byte <= 0x20; ++byte) classes[byte] = kNeverPlain;
  classes[0x7F] = classes['%'] = kNeverPlain;
  classes[':'] = classes['='] = classes[','] = kNotInKey;
  for (const char c : kNotFirst) classes[static_cast<unsigned char>(c)] = kNotFirstInKey;
  return classes;
}();

bool is_encoded(char c, bool is_key, bool is_first) {
  const std::uint8_t asked =
      kNeverPlain | (is_key ? kNotInKey : 0) | (is_key && is_first ? kNotFirstInKey : 0);
  return (kClasses[static_cast<unsigned char>(c)] & asked) != 0;
}

std::string encode(std::string_view plain, bool is_key) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string word;
  for (const char c : plain) {
    if (is_encoded(c, is_key, is_key && word.empty())) {
      const auto byte = static_cast<unsigned char>(c);
      word += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      word += c;
    }
  }
  return word;
}

[[noreturn]] void fault(std::string_view word, std::string expected) {
  throw PdgFault{word.data(), quoted(word), std::move(expected)};
}

// Value of an upper-case hexadecimal digit; nothing for any other character.
std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Up to 18 digits fit 64 bits unchecked; nearly all numbers of a file are such.
std::optional<std::int64_t> plain_integer(std::string_view word) {
  if (word.empty() || word.size() > 18) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::uint32_t number(std::string_view word, const char* what) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) {
    fault(word, what);
  }
  return value;
}

Cost cost(std::string_view word) {
  if (word == "-") return Cost::not_allowed();
  if (word == "?") return Cost::unknown();
  if (const auto ns = plain_integer(word)) return Cost::known(*ns);
  if (const auto ns = parse_ns(word)) return Cost::known(*ns);
  fault(word, "a time below 2^62 ns such as 12000, 12us or 1.5ms, - (not allowed) or ? (unknown)");
}

// Where the first byte is that decode() has to look at. Eight bytes at a time: a difference of 0
// from one of the marks, or a byte up to the space, borrows into its high bit. A borrow from a
// neighbour may mark a byte wrongly, but only behind one that is rightly marked.
std::size_t first_special(std::string_view word, bool is_key) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u, kHigh = 0x80 * kOnes;
  const std::uint8_t special = is_key ? kNeverPlain | kNotInKey : kNeverPlain;
  std::size_t at = 0;
  for (std::uint64_t eight; word.size() - at >= sizeof eight; at += sizeof eight) {
    std::memcpy(&eight, word.data() + at, sizeof eight);
    const auto is = [&](char c) {
      const std::uint64_t off = eight ^ static_cast<unsigned char>(c) * kOnes;
      return (off - kOnes) & ~off;
    };
    std::uint64_t found = ((eight - 0x21 * kOnes) & ~eight) | is('\x7F') | is('%');
    if (is_key) found |= is(':') | is('=') | is(',');
    if ((found & kHigh) != 0) break;
  }
  while (at < word.size() && (kClasses[static_cast<unsigned char>(word[at])] & special) == 0) ++at;
  return at;
}

}  // namespace

std::string encode_key(std::string_view plain) { return encode(plain, true); }

std::string encode_text(std::string_view plain) { return encode(plain, false); }

std::string_view PdgWords::decode(std::string_view word, bool is_key) {
  std::size_t at = first_special(word, is_key);
  if (at == word.size()) return word;
  std::string& plain = decoded_.emplace_back(word.substr(0, at));
  for (; at < word.size(); ++at) {
    const std::string_view rest = word.substr(at);
    if (rest[0] != '%') {
      if (is_encoded(rest[0], is_key, false)) {
        throw PdgFault{rest.data(), quoted(rest.substr(0, 1)) + " in " + quoted(word),
                       "%" + encode(rest.substr(0, 1), is_key).substr(1) + " in its place"};
      }
      plain += rest[0];
      continue;
    }
    const auto high = rest.size() > 2 ? hex_digit(rest[1]) : std::nullopt;
    const auto low = rest.size() > 2 ? hex_digit(rest[2]) : std::nullopt;
    if (!high || !low) fault(rest.substr(0, 3), "% and two of 0-9 A-F");
    const char byte = static_cast<char>(*high * 16 + *low);
    if (!is_encoded(byte, is_key, at == 0)) {
      fault(rest.substr(0, 3), "%XX only for what cannot stand as it is");
    }
    plain += byte;
    at += 2;
  }
  return plain;
}

std::string_view PdgWords::key(std::string_view word) {
  if (word.empty()) fault(word, "a key");
  if ((kClasses[static_cast<unsigned char>(word[0])] & kNotFirstInKey) != 0) {
    fault(word, "a key, which starts with none of " + std::string(kNotFirst));
  }
  return decode(word, true);
}

std::string_view PdgWords::text(std::string_view word) { return decode(word, false); }

std::vector<std::string> PdgWords::keys(std::string_view word) {
  std::vector<std::string> all;
  while (true) {
    const std::size_t comma = word.find(',');
    all.emplace_back(key(word.substr(0, comma)));
    if (comma == std::string_view::npos) return all;
    word.remove_prefix(comma + 1);
  }
}

std::int64_t PdgWords::bytes(std::string_view word) {
  if (const auto value = plain_integer(word)) return *value;
  if (const auto value = parse_bytes(word)) return *value;
  fault(word, "a size below 2^62 bytes such as 4096, 4KiB or 1.5MB");
}

std::int64_t PdgWords::integer(std::string_view word) {
  if (const auto value = plain_integer(word)) return *value;
  if (const auto value = parse_integer(word)) return *value;
  fault(word, "an integer below 2^62");
}

void PdgWords::costs(std::string_view word, std::vector<Cost>& to) {
  while (true) {
    const std::size_t comma = word.find(',');
    to.push_back(cost(word.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    word.remove_prefix(comma + 1);
  }
}

InputSpec PdgWords::input(std::string_view word) {
  InputSpec input;
  if (word.starts_with('^')) {
    input.control = true;
    input.key = key(word.substr(1));
    return input;
  }
  if (word.starts_with('!')) {
    input.modifies = true;
    word.remove_prefix(1);
  }
  const std::size_t colon = word.find(':');
  input.key = key(word.substr(0, colon));
  if (colon != std::string_view::npos) {
    input.output = number(word.substr(colon + 1), "the number of an output");
  }
  return input;
}

OutputSpec PdgWords::output(std::string_view word) {
  OutputSpec output;
  if (word.ends_with('*')) {
    output.fetched = true;
    word.remove_suffix(1);
  }
  if (word.starts_with('=')) {
    const std::size_t slash = word.find('/');
    output.alias_of = number(word.substr(1, slash == std::string_view::npos ? slash : slash - 1),
                             "the number of a data input");
    if (slash != std::string_view::npos) output.bytes = bytes(word.substr(slash + 1));
    return output;
  }
  const std::size_t tilde = word.find('~');
  const std::string_view size = word.substr(0, tilde);
  if (size != "?") output.bytes = bytes(size);
  if (tilde != std::string_view::npos) {
    output.takes_over = number(word.substr(tilde + 1), "the number of a data input");
  }
  return output;
}

}  // namespace pardnn
