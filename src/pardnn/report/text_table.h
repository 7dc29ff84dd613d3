// TextTable: rows of words in columns that line up, as text or as CSV.
#pragma once

#include <string>
#include <vector>

namespace pardnn {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : head_(std::move(head)) {}

  void add(std::vector<std::string> row);  // as many words as the head has
  // The first column to the left, the others to the right, two spaces between.
  std::string text() const;
  std::string csv() const;  // RFC 4180

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pardnn
