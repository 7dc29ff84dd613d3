// Fenwick tree: sums over ranges of a row of numbers that change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pardnn {

class Fenwick {
 public:
  explicit Fenwick(std::size_t size) : sums_(size + 1, 0) {}

  void add(std::size_t at, std::int64_t value) {
    for (++at; at < sums_.size(); at += at & (~at + 1)) sums_[at] += value;
  }
  // Of [first, last).
  std::int64_t sum(std::size_t first, std::size_t last) const {
    return before(last) - before(first);
  }

 private:
  std::int64_t before(std::size_t at) const {
    std::int64_t sum = 0;
    for (; at > 0; at &= at - 1) sum += sums_[at];
    return sum;
  }

  std::vector<std::int64_t> sums_;
};

}  // namespace pardnn
