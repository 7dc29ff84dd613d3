// Explanation: why a plan does not fit, and the smallest changes with which one would.
#pragma once

#include <optional>
#include <string>

#include "pardnn/partition/enough.h"
#include "pardnn/report/overflow.h"

namespace pardnn {

struct Explanation {
  Overflow overflow;
  std::optional<Enough> enough;  // nothing: it was not asked for
};

// Nothing for a plan that fits. The second plans again, as find_enough says.
std::optional<Explanation> explain(const Problem& problem, const Plan& plan);
std::optional<Explanation> explain(const Problem& problem, const Plan& plan,
                                   std::string_view algorithm, const Run& run);

// Sentences, each on a line of its own; an empty text for nothing.
std::string explanation_text(const Problem& problem, const Plan& plan,
                             const std::optional<Explanation>& explanation);
// The same as one JSON object; docs/formats.md has its members.
std::string explanation_json(const Problem& problem, const Explanation& explanation);

}  // namespace pardnn
