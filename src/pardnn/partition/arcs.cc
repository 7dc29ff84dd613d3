#include "pardnn/partition/arcs.h"

#include <algorithm>

#include "pardnn/partition/edges.h"

namespace pardnn {

Arcs::Arcs(const Problem& problem) : problem_(problem) {
  number_values();
  list_arcs();
  price_links();
}

void Arcs::number_values() {
  const Graph& graph = problem_.graph();
  value_of_tensor_.resize(graph.tensors().size());
  signal_of_op_.resize(graph.ops().size());
  const auto number = [&](std::int64_t bytes) {
    value_bytes_.push_back(bytes);
    return SentId{static_cast<std::uint32_t>(value_bytes_.size() - 1)};
  };
  for (const OpId op : graph.ops()) {
    if (graph.is_every(op)) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      if (!graph.readers(tensor).empty()) value_of_tensor_[tensor] = number(problem_.bytes(tensor));
    }
    if (!graph.control_readers(op).empty()) signal_of_op_[op] = number(0);
  }
}

void Arcs::list_arcs() {
  const Graph& graph = problem_.graph();
  const auto value_of = [&](OpId producer, std::optional<TensorId> tensor) {
    return tensor ? *value_of_tensor_[*tensor] : *signal_of_op_[producer];
  };
  std::vector<Arc> found;
  for (const OpId op : graph.ops()) {
    found.clear();
    if (!graph.is_every(op)) {
      for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId> tensor) {
        found.push_back({producer, value_of(producer, tensor)});
      });
      const auto by_value = [](const Arc& a, const Arc& b) { return a.value < b.value; };
      std::sort(found.begin(), found.end(), by_value);
      for (std::size_t n = 0; n < found.size(); ++n) {
        if (n == 0 || found[n].value != found[n - 1].value) producers_.add(found[n]);
      }
      for_each_reader(graph, op, [&](OpId reader, std::optional<TensorId> tensor) {
        readers_.add({reader, value_of(op, tensor)});
      });
    }
    producers_.close();
    readers_.close();
  }
}

void Arcs::price_links() {
  class_of_link_.resize(problem_.device_count() * problem_.device_count());
  for (const DeviceId from : problem_.devices()) {
    for (const DeviceId to : problem_.devices()) {
      if (from == to || !problem_.has_link(from, to)) continue;
      const Link& link = problem_.link(from, to);
      const LinkClass found{link.bytes_per_second, link.overhead_ns, link.latency_ns, from, to};
      const auto known = std::find(classes_.begin(), classes_.end(), found);
      class_of_link_[pair(from, to)] = static_cast<std::uint32_t>(known - classes_.begin());
      if (known == classes_.end()) classes_.push_back(found);
    }
  }
  crossing_ns_.reserve(value_bytes_.size() * classes_.size());
  for (const std::int64_t bytes : value_bytes_) {
    for (const LinkClass& link : classes_) {
      crossing_ns_.push_back(problem_.crossing_ns(bytes, link.from, link.to));
    }
  }
}

}  // namespace pardnn
