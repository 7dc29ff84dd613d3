#include "pardnn/plan/window.h"

#include <algorithm>
#include <limits>

namespace pardnn {

void Ways::add_longer(const Ways& ways, std::int64_t op_ns, std::int64_t crossing_ns) {
  add(ways.path_ns + op_ns, ways.apart_path_ns + op_ns,
      std::min(ways.apart_crossing_ns, crossing_ns));
}

void Ways::add(std::int64_t path, std::int64_t apart_path, std::int64_t apart_crossing) {
  path_ns = std::max(path_ns, path);
  if (apart_path + apart_crossing <= apart_ns()) return;
  apart_path_ns = apart_path;
  apart_crossing_ns = apart_crossing;
}

Window::Window(const Relaxed& relaxed, const Lists<OpId, Relaxed::Edge>& before, bool ids_rise,
               std::size_t most)
    : least_ns_(relaxed.least_ns),
      before_(before),
      ids_rise_(ids_rise),
      most_(most),
      taken_for_(before.size()),
      place_(before.size()) {}

void Window::open(OpId op, const Table<OpId, std::int64_t>& head_ns) {
  op_ = op;
  ancestors_.clear();
  labels_.clear();
  reach(op, 0, std::numeric_limits<std::int64_t>::max(), head_ns);
  while (!labels_.empty() && ancestors_.size() < most_) {
    std::pop_heap(labels_.begin(), labels_.end());
    const Label label = labels_.back();
    labels_.pop_back();
    if (has(label.op)) continue;
    taken_for_[label.op] = op;
    ancestors_.push_back({.op = label.op,
                          .head_ns = head_ns[label.op],
                          .least_ns = least_ns_[label.op],
                          .out = {},
                          .in = {}});
    reach(label.op, label.path_ns + least_ns_[label.op], label.crossing_ns, head_ns);
  }
  std::sort(ancestors_.begin(), ancestors_.end(), [this](const Ancestor& a, const Ancestor& b) {
    return ids_rise_ ? a.op < b.op : a.op > b.op;
  });
  for (std::size_t n = 0; n < ancestors_.size(); ++n) {
    place_[ancestors_[n].op] = static_cast<std::uint32_t>(n);
  }
  find_ways_out();
}

void Window::reach(OpId from, std::int64_t path_ns, std::int64_t crossing_ns,
                   const Table<OpId, std::int64_t>& head_ns) {
  for (const Relaxed::Edge& edge : edges(from)) {
    if (has(edge.op)) continue;
    const std::int64_t least_ns = std::min(crossing_ns, edge.crossing_ns);
    const std::int64_t finish_ns = head_ns[edge.op] + least_ns_[edge.op];
    labels_.push_back({finish_ns + path_ns + least_ns, edge.op, path_ns, least_ns});
    std::push_heap(labels_.begin(), labels_.end());
  }
}

void Window::find_ways_out() {
  for (const Relaxed::Edge& edge : edges(*op_)) {
    if (!has(edge.op)) continue;
    Ancestor& producer = ancestors_[place_[edge.op]];
    producer.out.add_edge(edge.crossing_ns);
    ++producer.readers;
  }
  for (std::size_t n = ancestors_.size(); n-- > 0;) {
    const Ancestor& reader = ancestors_[n];
    for (const Relaxed::Edge& edge : edges(reader.op)) {
      if (!has(edge.op)) continue;
      Ancestor& producer = ancestors_[place_[edge.op]];
      producer.out.add_longer(reader.out, reader.least_ns, edge.crossing_ns);
      ++producer.readers;
    }
  }
}

std::optional<std::size_t> Window::anchor() const {
  std::optional<std::size_t> best;
  for (std::size_t n = 0; n < ancestors_.size(); ++n) {
    if (ancestors_[n].readers < 2) continue;
    if (!best || ancestors_[n].key_ns() > ancestors_[*best].key_ns()) best = n;
  }
  return best;
}

std::size_t Window::find_ways_in(std::size_t anchor) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < ancestors_.size(); ++n) {
    Ancestor& reader = ancestors_[n];
    reader.in = Ways();
    if (n <= anchor) continue;
    for (const Relaxed::Edge& edge : edges(reader.op)) {
      if (!has(edge.op)) continue;
      const Ancestor& producer = ancestors_[place_[edge.op]];
      if (place_[edge.op] == anchor) {
        reader.in.add_edge(edge.crossing_ns);
      } else if (producer.in.any()) {
        reader.in.add_longer(producer.in, producer.least_ns, edge.crossing_ns);
      }
    }
    count += reader.in.any();
  }
  return count;
}

}  // namespace pardnn
