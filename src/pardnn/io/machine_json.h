// Machine files: JSON in, Machine out, and back (docs/formats.md).
#pragma once

#include <string>
#include <string_view>

#include "pardnn/problem/machine.h"

namespace pardnn {

// Throws Error `source: …` naming the member that is wrong, what was found and what was expected.
Machine read_machine(std::string_view text, std::string_view source);

// The same machine as text; reading it again gives an equal machine.
std::string write_machine(const Machine& machine);

}  // namespace pardnn
