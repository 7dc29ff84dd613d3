// The problem as lower bounds see it: ops at their least time, edges at their least crossing.
#pragma once

#include <cstdint>
#include <vector>

#include "pardnn/base/table.h"
#include "pardnn/problem/problem.h"

namespace pardnn {

struct Relaxed {
  // To another op, and how long what flows between the two takes at least if they are apart.
  struct Edge {
    OpId op;
    std::int64_t crossing_ns = 0;
  };
  Table<OpId, std::int64_t> least_ns;  // over the devices where the op may run; 0 for `every` ops
  // Ordinary ops that an op waits for, and that wait for it; ascending, each once.
  Lists<OpId, Edge> before, after;
};

Relaxed relax(const Problem& problem);

}  // namespace pardnn
