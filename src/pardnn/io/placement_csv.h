// Placements as CSV: a key and the name of a device a line.
#pragma once

#include <string>
#include <string_view>

#include "pardnn/plan/plan.h"

namespace pardnn {

// Every op but `every` ops and every variable must be there once, or, for members of a group, at
// least one of the group. A first line `key,device` is skipped, '#' starts a comment line. Throws
// Error `source:line: …`.
Placement read_placement(std::string_view text, std::string_view source, const Problem& problem);

std::string write_placement(const Problem& problem, const Placement& placement);

}  // namespace pardnn
