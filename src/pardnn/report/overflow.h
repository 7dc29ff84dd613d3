// What stands in the way when a plan does not fit: the device, the moment and what it holds then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pardnn/plan/plan.h"
#include "pardnn/sim/simulate.h"

namespace pardnn {

inline constexpr std::size_t kShownHolders = 10;

// Of the device that overflows most.
struct Overflow {
  DeviceId device;
  std::int64_t missing_bytes = 0;
  std::int64_t bytes = 0;       // the peak that the limit is compared with
  std::int64_t at_ns = 0;       // of the simulated peak
  std::size_t buffers = 0;      // that the device holds then
  std::vector<Buffer> holders;  // the largest of them, at most kShownHolders, the largest first
};

std::optional<Overflow> find_overflow(const Problem& problem, const Plan& plan);

std::string overflow_text(const Problem& problem, const Plan& plan, const Overflow& overflow);
// The same of the plan's overflow; an empty text for a plan that fits.
std::string overflow_text(const Problem& problem, const Plan& plan);

// "output", "copy", "every", "variable", "workspace" or "reserve".
std::string_view kind_name(Buffer::What what);
// The op or variable that the buffer belongs to: its name, or its key where it has none; empty for
// the reserve.
std::string holder_name(const Graph& graph, const Buffer& buffer);

}  // namespace pardnn
