// Machines by name: the files of machines/, compiled in, so that a program finds them anywhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pardnn/problem/machine.h"

namespace pardnn {

// In alphabetical order.
std::vector<std::string_view> machine_preset_names();

// The machine of a file, or of a preset: a text without `/` that is no file and does not end in
// `.json` is the name of one. Throws Error for a file as read_machine does, and for an unknown name
// one that lists all names.
Machine find_machine(const std::string& file_or_name);

}  // namespace pardnn
