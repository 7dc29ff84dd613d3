// Summary: a plan in a few lines for people, or as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pardnn/plan/plan.h"
#include "pardnn/partition/warm_start.h"
#include "pardnn/report/explanation.h"

namespace pardnn {

// Step, bound and what each device holds, does and sends.
std::string summary_text(const Problem& problem, const Plan& plan);
std::string summary_json(const Problem& problem, const Plan& plan,
                         const std::optional<Explanation>& explanation,
                         const std::optional<Moved>& moves = std::nullopt);
// "3 of 370 matched ops moved, 4 are new, 2 are gone"
std::string moves_text(const Moved& moves);

// "at most 8 % above the best possible (11.4 ms)".
std::string bound_text(std::int64_t step_ns, std::int64_t bound_ns);

// What the devices do in a step.
struct DeviceWork {
  std::int64_t ops = 0;
  std::int64_t busy_ns = 0;
  std::int64_t bytes_sent = 0;
};
Table<DeviceId, DeviceWork> device_work(const Problem& problem, const Plan& plan);
// Busy time of all devices in per mille of devices times step; 0 for an empty step.
std::int64_t utilisation_per_mille(const Problem& problem, const Plan& plan);

// The step of the one device that does all ops soonest, whatever memory that takes; nothing where
// no device may do all of them.
std::optional<std::int64_t> one_device_ns(const Problem& problem);

}  // namespace pardnn
