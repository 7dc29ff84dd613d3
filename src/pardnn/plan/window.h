// Window: the ancestors of one op that matter most for when it can start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pardnn/plan/relaxed.h"

namespace pardnn {

// The ways between two ops: the times strictly between them at least, and the same together with
// one crossing of an edge on the way, which is what passes if the two ops are apart. -1: no way.
struct Ways {
  std::int64_t path_ns = -1;
  std::int64_t apart_path_ns = -1, apart_crossing_ns = -1;  // of the way with the greatest sum

  bool any() const { return path_ns >= 0; }
  std::int64_t apart_ns() const { return apart_path_ns + apart_crossing_ns; }
  void add_edge(std::int64_t crossing_ns) { add(0, 0, crossing_ns); }
  // These ways, then an op, then an edge. One way is kept: that is enough for a bound.
  void add_longer(const Ways& ways, std::int64_t op_ns, std::int64_t crossing_ns);

 private:
  void add(std::int64_t path_ns, std::int64_t apart_path_ns, std::int64_t apart_crossing_ns);
};

struct Ancestor {
  OpId op;
  std::int64_t head_ns = 0, least_ns = 0;
  Ways out;                   // from it to the op
  Ways in;                    // from the anchor to it
  std::uint32_t readers = 0;  // in the window, the op among them

  std::int64_t finish_ns() const { return head_ns + least_ns; }
  // If it is not on the op's device, the op cannot start before.
  std::int64_t key_ns() const { return finish_ns() + out.apart_ns(); }
};

class Window {
 public:
  // `before` is what ops wait for or, to look from the end of the step, what waits for them; then
  // ids fall along edges instead of rising. Keeps the references.
  Window(const Relaxed& relaxed, const Lists<OpId, Relaxed::Edge>& before, bool ids_rise,
         std::size_t most);

  // Collects the ancestors of greatest key, best first: keys fall along every path backwards, for
  // the head of a producer plus its time is at most the head of its reader, and crossings only get
  // fewer. Ancestors are then in topological order.
  void open(OpId op, const Table<OpId, std::int64_t>& head_ns);

  const std::vector<Ancestor>& ancestors() const { return ancestors_; }

  // Of the ancestors with two readers in the window the one of greatest key.
  std::optional<std::size_t> anchor() const;
  // Fills `in` of all ancestors, and answers how many have a way.
  std::size_t find_ways_in(std::size_t anchor);

 private:
  static constexpr std::size_t kMostEdges = 4;  // per op of a full window

  struct Label {
    std::int64_t key_ns;
    OpId op;
    std::int64_t path_ns, crossing_ns;
    bool operator<(const Label& other) const {
      return key_ns != other.key_ns ? key_ns < other.key_ns : op > other.op;
    }
  };

  void reach(OpId from, std::int64_t path_ns, std::int64_t crossing_ns,
             const Table<OpId, std::int64_t>& head_ns);
  void find_ways_out();
  bool has(OpId op) const { return taken_for_[op] == op_; }
  // Edges that are followed. A reader of very many is a dead end, so that it does not cost its
  // degree again and again.
  std::span<const Relaxed::Edge> edges(OpId op) const {
    const auto all = before_[op];
    return op == op_ || all.size() <= kMostEdges * most_ ? all : all.first(0);
  }

  const Table<OpId, std::int64_t>& least_ns_;
  const Lists<OpId, Relaxed::Edge>& before_;
  bool ids_rise_;
  std::size_t most_;
  std::optional<OpId> op_;
  std::vector<Ancestor> ancestors_;
  Table<OpId, std::optional<OpId>> taken_for_;  // the op for which each was collected last
  Table<OpId, std::uint32_t> place_;            // among ancestors_
  std::vector<Label> labels_;                   // heap
};

}  // namespace pardnn
