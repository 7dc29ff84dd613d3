#include "pardnn/report/text_table.h"

#include <algorithm>

#include "pardnn/base/error.h"

namespace pardnn {

namespace {

// Characters, not bytes, of a UTF-8 text.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string csv_word(const std::string& word) {
  if (word.find_first_of(",\"\r\n") == std::string::npos) return word;
  std::string text = "\"";
  for (const char c : word) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  PARDNN_CHECK(row.size() == head_.size());
  rows_.push_back(std::move(row));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(head_.size());
  const auto widen = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  };
  widen(head_);
  for (const auto& row : rows_) widen(row);
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string words;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - width(row[i]), ' ');
      words += i == 0 ? row[i] + gap : "  " + gap + row[i];
    }
    words.erase(words.find_last_not_of(' ') + 1);
    text += words + "\n";
  };
  line(head_);
  for (const auto& row : rows_) line(row);
  return text;
}

std::string TextTable::csv() const {
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + csv_word(row[i]);
    text += "\n";
  };
  line(head_);
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace pardnn
