// Refinement of a cut: a first placement of the coarsest lumps, and moves that cost less each time.
#pragma once

#include "pardnn/partition/cut_state.h"
#include "pardnn/partition/run.h"

namespace pardnn {

// Lumps in order, each to the device where it makes the least excess; ties to the most wires saved,
// then the least load.
void place_lumps(CutState& state);

// Moves lumps while that lowers the cost; never makes it greater. First what is above the caps is
// spread, dearest wires last. Then passes as of Fiduccia and Mattheyses (1982): the move of
// greatest gain that adds no excess is made, even when it loses, no lump twice; in the end what
// came after the best moment is undone. O(moves * degree * devices * log lumps) a pass.
void refine_cut(CutState& state, const Run& run);

}  // namespace pardnn
