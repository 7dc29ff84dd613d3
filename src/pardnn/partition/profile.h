// Profile: bytes in use over a row of moments; add to a range, ask the most of a range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pardnn {

// A segment tree in which a node keeps the most of its range, less what the nodes above it keep: of
// two children the greater keeps 0. Both operations are O(log moments). Ranges are half-open.
class Profile {
 public:
  explicit Profile(std::size_t moments) : moments_(moments) {
    while (leaves_ < moments) leaves_ *= 2;
    most_.resize(2 * leaves_);
  }

  void add(std::size_t first, std::size_t last, std::int64_t bytes) {
    if (first < last) add(1, 0, leaves_, first, last, bytes);
  }

  std::int64_t most(std::size_t first, std::size_t last) const {
    return first < last ? most(1, 0, leaves_, first, last) : 0;
  }
  std::int64_t most() const { return most_[1]; }
  std::int64_t at(std::size_t moment) const { return most(moment, moment + 1); }

  // The first moment of the most bytes.
  std::size_t fullest() const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (most_[2 * node] < most_[2 * node + 1]);
    return std::min(node - leaves_, moments_ - 1);
  }

 private:
  void add(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t last,
           std::int64_t bytes) {
    if (first <= from && to <= last) {
      most_[node] += bytes;
      return;
    }
    const std::size_t middle = (from + to) / 2;
    std::int64_t &left = most_[2 * node], &right = most_[2 * node + 1];
    if (first < middle) add(2 * node, from, middle, first, last, bytes);
    if (last > middle) add(2 * node + 1, middle, to, first, last, bytes);
    const std::int64_t greater = std::max(left, right);
    left -= greater;
    right -= greater;
    most_[node] += greater;
  }

  std::int64_t most(std::size_t node, std::size_t from, std::size_t to, std::size_t first,
                    std::size_t last) const {
    if (first <= from && to <= last) return most_[node];
    const std::size_t middle = (from + to) / 2;
    if (last <= middle) return most_[node] + most(2 * node, from, middle, first, last);
    if (first >= middle) return most_[node] + most(2 * node + 1, middle, to, first, last);
    return most_[node] + std::max(most(2 * node, from, middle, first, last),
                                  most(2 * node + 1, middle, to, first, last));
  }

  std::size_t moments_, leaves_ = 1;
  std::vector<std::int64_t> most_;
};

}  // namespace pardnn
