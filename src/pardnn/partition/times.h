// Times that planners ask for again and again, kept in tables: transfers and levels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pardnn/base/integers.h"
#include "pardnn/problem/problem.h"
#include "pardnn/plan/plan.h"

namespace pardnn {

// Transfer times of one problem: a table per tensor of the mean over all links and, where all links
// are alike, of the time on one.
class Times {
 public:
  // `weight` multiplies the mean crossings, to plan as if transfers were that much dearer.
  explicit Times(const Problem& problem, std::int64_t weight = 1);

  // Mean over all links of the time an unhindered transfer takes; no tensor: a control edge.
  std::int64_t mean_crossing_ns(std::optional<TensorId> tensor) const {
    return tensor.has_value() ? crossing_ns_[*tensor] : control_crossing_ns_;
  }
  // How long the transfer holds the channels of the link, which must be there.
  std::int64_t busy_ns(std::optional<TensorId> tensor, DeviceId from, DeviceId to) const {
    if (!alike_) return problem_.busy_ns(tensor ? problem_.bytes(*tensor) : 0, from, to);
    return tensor.has_value() ? busy_ns_[*tensor] : control_busy_ns_;
  }

 private:
  const Problem& problem_;
  bool alike_ = false;
  Table<TensorId, std::int64_t> crossing_ns_, busy_ns_;
  std::int64_t control_crossing_ns_ = 0, control_busy_ns_ = 0;
};

// The longest path from each op to the end, its own mean time included. Transfers count their mean
// time on every edge or, given a placement, only where it crosses devices. `every` ops have 0.
Table<OpId, std::int64_t> bottom_levels(const Problem& problem, const Times& times);
Table<OpId, std::int64_t> bottom_levels(const Problem& problem, const Times& times,
                                        const UnitPlacement& placement);

// The longest path of mean op times from the start to each op, its own time left out, transfers
// at zero: the moment it would start with devices and links without end.
Table<OpId, std::int64_t> earliest_starts(const Problem& problem);

}  // namespace pardnn
