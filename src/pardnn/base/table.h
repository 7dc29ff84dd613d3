// Table<Id, T>: one T for every id of a kind, indexed by the id and by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pardnn/base/ids.h"

namespace pardnn {

template <IdType Id, class T>
class Table {
 public:
  using Rows = std::vector<T>;

  Table() = default;
  explicit Table(std::size_t size) : rows_(size) {}
  Table(std::size_t size, const T& value) : rows_(size, value) {}
  explicit Table(Rows rows) : rows_(std::move(rows)) {}

  typename Rows::reference operator[](Id id) { return rows_[index(id)]; }
  typename Rows::const_reference operator[](Id id) const { return rows_[index(id)]; }

  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  bool contains(Id id) const { return index(id) < rows_.size(); }
  void resize(std::size_t size, const T& value = T()) { rows_.resize(size, value); }
  void assign(std::size_t size, const T& value) { rows_.assign(size, value); }
  void clear() { rows_.clear(); }
  void reserve(std::size_t size) { rows_.reserve(size); }
  // Appends a row and returns the id it got.
  Id push(T row) {
    rows_.push_back(std::move(row));
    return Id{static_cast<std::uint32_t>(rows_.size() - 1)};
  }

  IdRange<Id> ids() const { return IdRange<Id>(rows_.size()); }
  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  const Rows& rows() const { return rows_; }

  friend bool operator==(const Table&, const Table&) = default;

 private:
  Rows rows_;
};

// Lists<Id, T>: a list of T for every id, all lists in one flat array.
template <IdType Id, class T>
class Lists {
 public:
  Lists() : first_{0} {}
  // Lists that are laid out already: list n is values[first[n]] up to values[first[n + 1]].
  Lists(std::vector<std::uint32_t> first, std::vector<T> values)
      : first_(std::move(first)), values_(std::move(values)) {}
  // Takes the lists in the order of their ids: add to the open list, then close it.
  void add(T value) { values_.push_back(std::move(value)); }
  void close() { first_.push_back(static_cast<std::uint32_t>(values_.size())); }

  std::span<const T> operator[](Id id) const {
    const std::uint32_t from = first_[index(id)], to = first_[index(id) + 1];
    return {values_.data() + from, to - from};
  }
  // Position of the list's first value among all values, to keep columns of one's own beside it.
  std::size_t offset(Id id) const { return first_[index(id)]; }
  std::size_t size() const { return first_.size() - 1; }
  const std::vector<T>& values() const { return values_; }
  void reserve(std::size_t lists, std::size_t values) {
    first_.reserve(lists + 1);
    values_.reserve(values);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<T> values_;
};

}  // namespace pardnn
