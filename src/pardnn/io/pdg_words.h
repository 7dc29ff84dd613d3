// The words of a .pdg line, one by one: keys, texts, quantities, inputs and outputs.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/graph/builder.h"

namespace pardnn {

// A word that is not what it should be; whoever knows the line makes an Error of it.
struct PdgFault {
  const char* at;  // into the word
  std::string found, expected;
};

// Keys, names and texts of the file are written with %XX for what would end or confuse a word.
std::string encode_key(std::string_view plain);
std::string encode_text(std::string_view plain);

// Parses words; throws PdgFault. Views of decoded words live until clear() or the end of this
// object, and all others as long as the word they were made from.
class PdgWords {
 public:
  std::string_view key(std::string_view word);  // also names, types, devices
  std::string_view text(std::string_view word);
  std::vector<std::string> keys(std::string_view word);  // A,B,…
  static std::int64_t bytes(std::string_view word);
  static std::int64_t integer(std::string_view word);
  // Appends one cost or one per kind.
  static void costs(std::string_view word, std::vector<Cost>& to);
  // KEY, KEY:n, ^KEY or !X; the place is left to the caller.
  InputSpec input(std::string_view word);
  // BYTES, BYTES~n, ?, ?~n, =n, =n/BYTES, each with an optional *.
  static OutputSpec output(std::string_view word);

  void clear() { decoded_.clear(); }

 private:
  std::string_view decode(std::string_view word, bool is_key);
  std::deque<std::string> decoded_;
};

}  // namespace pardnn
