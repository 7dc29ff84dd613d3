// Refinement of the schedule's critical path, step 1d 3 of ParDNN.
#pragma once

#include "pardnn/partition/refinement.h"

namespace pardnn {

// From the op that finishes last, whatever fixed each start is followed back: the input that
// arrived last, or the op before on the device. For an edge u -> v of that chain that crosses
// devices, moving u to v's device is estimated to gain start(v) less the later of u's new finish
// and v's other inputs. Rounds take in turn the single best move and all positive moves that do
// not touch each other; at most devices + 1 rounds, none after two in a row that did not shorten
// the step.
void refine_critical_path(Refinement& refinement);

// The same for longer: a single move that did not shorten the step is not tried again, and rounds
// go on until none is left or `rounds` are over.
void follow_critical_path(Refinement& refinement, int rounds, const Run& run);

}  // namespace pardnn
