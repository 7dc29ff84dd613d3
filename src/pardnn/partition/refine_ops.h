// Refinement of ops, step 1d 2 of ParDNN.
#pragma once

#include "pardnn/partition/refinement.h"

namespace pardnn {

// An op whose readers all lie on one other device moves there when the transfers saved exceed
// those caused and its own time or, when its producers all lie there too, when its own time is at
// most what is saved. In the order of ids, whole units, at most three passes.
void refine_ops(Refinement& refinement);

}  // namespace pardnn
