// Refinement of paths, step 1d 1 of ParDNN.
#pragma once

#include "pardnn/partition/flow.h"
#include "pardnn/partition/refinement.h"
#include "pardnn/partition/slicing.h"

namespace pardnn {

// With T(device) its work and the transfers it receives: a secondary on d whose producers and
// readers all lie on one other device g is swapped with the mirror path, on g and with neighbours
// on d alone, that comes nearest to evening out T(d) and T(g), if the greatest T falls; else it
// moves to g if that falls. Heaviest first, one pass; whole units move, primaries never.
void refine_paths(Refinement& refinement, const Flow& flow, const Slicing& slicing);

}  // namespace pardnn
