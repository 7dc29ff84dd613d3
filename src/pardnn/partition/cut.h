// Row `cut`: the graph cut where least is sent, work shared out evenly all along the step.
#pragma once

#include "pardnn/partition/rows.h"

namespace pardnn {

Proposal cut(const Problem& problem, const Run& run);

}  // namespace pardnn
