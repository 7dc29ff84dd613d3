// Arcs: the edges between ordinary ops in flat arrays, each once, with their transfer times; what
// searches walk again and again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pardnn/base/integers.h"
#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// What an ordinary op hands on: a tensor that ordinary ops read, or its signal along control edges.
enum class SentId : std::uint32_t {};

struct Arc {
  OpId op;  // at the other end
  SentId value;
};

class Arcs {
 public:
  explicit Arcs(const Problem& problem);

  // Each value that the op waits for, once, with its producer; each reader of each of its values.
  std::span<const Arc> producers(OpId op) const { return producers_[op]; }
  std::span<const Arc> readers(OpId op) const { return readers_[op]; }
  std::size_t value_count() const { return value_bytes_.size(); }

  // Time that an unhindered transfer takes, and how long it holds its channels; the devices differ.
  // kMaxQuantity where no link leads.
  std::int64_t crossing_ns(SentId value, DeviceId from, DeviceId to) const {
    const std::optional<std::uint32_t>& link = class_of_link_[pair(from, to)];
    return link ? crossing_ns_[index(value) * classes_.size() + *link] : kMaxQuantity;
  }
  std::int64_t busy_ns(SentId value, DeviceId from, DeviceId to) const {
    return crossing_ns(value, from, to) - problem_.link(from, to).latency_ns;
  }

 private:
  struct LinkClass {  // links that cost the same
    std::int64_t bytes_per_second, overhead_ns, latency_ns;
    DeviceId from, to;  // one of them
    friend bool operator==(const LinkClass& a, const LinkClass& b) {
      return a.bytes_per_second == b.bytes_per_second && a.overhead_ns == b.overhead_ns &&
             a.latency_ns == b.latency_ns;
    }
  };

  std::size_t pair(DeviceId from, DeviceId to) const {
    return index(from) * problem_.device_count() + index(to);
  }
  void number_values();
  void list_arcs();
  void price_links();

  const Problem& problem_;
  std::vector<std::int64_t> value_bytes_;  // by value
  Table<TensorId, std::optional<SentId>> value_of_tensor_;
  Table<OpId, std::optional<SentId>> signal_of_op_;
  Lists<OpId, Arc> producers_, readers_;
  std::vector<LinkClass> classes_;
  std::vector<std::optional<std::uint32_t>> class_of_link_;  // devices x devices
  std::vector<std::int64_t> crossing_ns_;                    // values x classes
};

}  // namespace pardnn
