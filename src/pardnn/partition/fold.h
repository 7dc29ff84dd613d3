// Fold: a line of units on which an op of the backward pass lies beside the forward ops whose
// values it reads, so that a cut of the line keeps saved values where they are read.
#pragma once

#include <vector>

#include "pardnn/partition/best.h"
#include "pardnn/partition/chunks.h"
#include "pardnn/partition/times.h"

namespace pardnn {

// What a step looks like on one device.
struct FoldedStep {
  std::vector<UnitId> units;  // that have ops, along the fold
  SplitWeights weights;       // bytes: what each unit holds at the peak of one device
};

// Forward is what the graph calls so or, where it names no phases, what starts before the moment
// of most memory on one device. A forward op lies at its earliest start, a source just
// before its first reader; every later op at the
// least of its weighty producers, those whose tensors have at least a quarter of the bytes of its
// largest input; what hangs on sources alone at the first of its readers. A unit lies at its first
// op. O(ops + edges) and one simulation.
FoldedStep fold_step(const Problem& problem, const Times& times, Trial& trial);

}  // namespace pardnn
