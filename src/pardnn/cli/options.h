// Options of a command: declared once in a table, from which parsing, help and errors come.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/base/error.h"

namespace pardnn::cli {

// Wrong usage: exit status 2, with a pointer to the command's --help.
class UsageError : public Error {
 public:
  using Error::Error;
};

struct Option {
  std::string_view names;  // "--output" or "-o, --output"
  std::string_view value;  // what stands for the value in the help; empty: a switch
  std::string help;
  std::function<void(std::string_view)> set;  // throws UsageError through `reject` when it is wrong
};

// Complains about the value of an option: `--memory: found 7XB, expected …`.
[[noreturn]] void reject(std::string_view option, std::string_view found,
                         std::string_view expected);

// Reads the words after the command: options in any order, `--name value` or `--name=value`; `--`
// ends them. Answers what is left, in order.
std::vector<std::string> parse_options(const std::vector<std::string>& words,
                                       const std::vector<Option>& options);

// The options as lines of a help text.
std::string describe_options(const std::vector<Option>& options);

// The word of `known` that is nearest to a mistyped one, or an empty text when none is near.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace pardnn::cli
