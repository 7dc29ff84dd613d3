// Ids are types of their own: an op can never be used where a tensor is meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace pardnn {

enum class OpId : std::uint32_t {};        // ops, numbered in topological order
enum class TensorId : std::uint32_t {};    // outputs, numbered by (op, output number)
enum class VariableId : std::uint32_t {};  // variables, numbered by key
enum class GroupId : std::uint32_t {};     // groups that the graph names
enum class KindId : std::uint32_t {};      // sorts of device, the columns of costs
enum class DeviceId : std::uint32_t {};
enum class ChannelId : std::uint32_t {};
enum class UnitId : std::uint32_t {};  // what is placed as a whole: a group, or an op of no group

template <class Id>
concept IdType = requires(Id id) { static_cast<std::uint32_t>(id); } && !std::integral<Id>;

template <IdType Id>
constexpr std::uint32_t index(Id id) {
  return static_cast<std::uint32_t>(id);
}

template <IdType Id>
constexpr Id next(Id id) {
  return Id{index(id) + 1};
}

// The ids first, first + 1, ... last - 1, to loop over.
template <IdType Id>
class IdRange {
 public:
  class iterator {
   public:
    using value_type = Id;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::random_access_iterator_tag;
    using reference = Id;
    using pointer = const Id*;
    iterator() = default;
    explicit iterator(std::uint32_t at) : at_(at) {}
    Id operator*() const { return Id{at_}; }
    Id operator[](difference_type n) const {
      return Id{static_cast<std::uint32_t>(static_cast<difference_type>(at_) + n)};
    }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    iterator& operator--() { return --at_, *this; }
    iterator operator--(int) { return iterator(at_--); }
    iterator& operator+=(difference_type n) {
      at_ = static_cast<std::uint32_t>(static_cast<difference_type>(at_) + n);
      return *this;
    }
    iterator& operator-=(difference_type n) { return *this += -n; }
    friend iterator operator+(iterator it, difference_type n) { return it += n; }
    friend iterator operator+(difference_type n, iterator it) { return it += n; }
    friend iterator operator-(iterator it, difference_type n) { return it -= n; }
    friend difference_type operator-(iterator a, iterator b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    friend auto operator<=>(iterator a, iterator b) = default;

   private:
    std::uint32_t at_ = 0;
  };

  IdRange() = default;
  IdRange(Id first, Id last) : first_(index(first)), last_(index(last)) {}
  explicit IdRange(std::size_t count) : last_(static_cast<std::uint32_t>(count)) {}
  iterator begin() const { return iterator(first_); }
  iterator end() const { return iterator(last_); }
  std::size_t size() const { return last_ - first_; }
  bool empty() const { return first_ == last_; }
  Id front() const { return Id{first_}; }
  Id operator[](std::size_t n) const { return Id{first_ + static_cast<std::uint32_t>(n)}; }

 private:
  std::uint32_t first_ = 0, last_ = 0;
};

}  // namespace pardnn
