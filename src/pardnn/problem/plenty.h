// Whether memory decides anything at all.
#pragma once

#include "pardnn/problem/problem.h"

namespace pardnn {

// Whether no placement and no order could pass a limit: each device holds every variable, every
// tensor (of its own or as a copy) and the largest workspace at once. What is false may fit, too.
bool memory_is_plenty(const Problem& problem);

}  // namespace pardnn
