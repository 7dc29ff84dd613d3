#include "pardnn/cli/options.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace pardnn::cli {

namespace {

std::vector<std::string_view> split_names(std::string_view names) {
  std::vector<std::string_view> parts;
  while (!names.empty()) {
    const std::size_t comma = names.find(", ");
    parts.push_back(names.substr(0, comma));
    names = comma == std::string_view::npos ? "" : names.substr(comma + 2);
  }
  return parts;
}

const Option& find_option(std::string_view name, const std::vector<Option>& options) {
  std::vector<std::string_view> known;
  for (const Option& option : options) {
    for (const std::string_view one : split_names(option.names)) {
      if (one == name) return option;
      known.push_back(one);
    }
  }
  const std::string near = nearest(name, known);
  throw UsageError("found the option " + std::string(name) + ", which there is not" +
                   (near.empty() ? "" : "; is " + near + " meant?"));
}

// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

void reject(std::string_view option, std::string_view found, std::string_view expected) {
  throw UsageError(std::string(option) + ": found " +
                   (found.empty() ? std::string("an empty text") : std::string(found)) +
                   ", expected " + std::string(expected));
}

std::vector<std::string> parse_options(const std::vector<std::string>& words,
                                       const std::vector<Option>& options) {
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {  // "-" alone is standard input
      rest.emplace_back(word);
      continue;
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string_view name = word.substr(0, equals);
    const Option& option = find_option(name, options);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = word.substr(equals + 1);
    if (option.value.empty()) {
      if (value) throw UsageError(std::string(name) + ": found a value, expected none");
      option.set("");
      continue;
    }
    if (!value) {
      if (i + 1 == words.size()) {
        throw UsageError(std::string(name) + ": found nothing after it, expected " +
                         std::string(option.value));
      }
      value = words[++i];
    }
    option.set(*value);
  }
  return rest;
}

std::string describe_options(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options) {
    std::string head = "  " + std::string(option.names);
    if (!option.value.empty()) head += " " + std::string(option.value);
    constexpr std::size_t kColumn = 30;
    text += head;
    text += head.size() + 2 > kColumn ? "\n" + std::string(kColumn, ' ')
                                      : std::string(kColumn - head.size(), ' ');
    for (const char c : option.help) {
      text += c;
      if (c == '\n') text += std::string(kColumn, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t least = 3;  // more than two letters off is another word
  for (const std::string_view one : known) {
    const std::size_t off = distance(word, one);
    if (off < least) {
      least = off;
      best = one;
    }
  }
  return std::string(best);
}

}  // namespace pardnn::cli
