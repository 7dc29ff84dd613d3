// What lumps weigh and how much each device may take: time in slices of the step, and bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pardnn/partition/byte_caps.h"
#include "pardnn/partition/cut_graph.h"

namespace pardnn {

struct CutCaps {
  std::size_t weight_count = 0;
  std::vector<std::int64_t> caps;  // devices x weights

  std::span<const std::int64_t> of(DeviceId device) const {
    return {caps.data() + index(device) * weight_count, weight_count};
  }
};

// Weighs the lumps of units: the mean time of their ops in each of `slices` slices of about the
// same work, cut by the moments at which ops start, and, if a device may not have all of them,
// bytes. A device may take its share of a slice by speed and kSlackPerMille of that, or as much as
// the longest path inside the slice: the slice takes that long in any case. Of bytes it may take
// what the caps give it.
CutCaps weigh(const Problem& problem, const Table<OpId, std::int64_t>& start_ns, std::size_t slices,
              const ByteCaps& bytes, CutGraph& graph);

}  // namespace pardnn
