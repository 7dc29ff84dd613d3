// Coarsening of a cut: lumps that exchange much become one, again and again.
#pragma once

#include <vector>

#include "pardnn/partition/cut_weights.h"

namespace pardnn {

struct CutLevel {
  CutGraph graph;
  Table<LumpId, LumpId> coarser;  // of each lump; empty at the coarsest level
};

// From the finest to the coarsest. Only lumps that may be on the same devices are joined, and no
// lump grows beyond a part of every cap. O((lumps + members of wires) * log) over all levels as
// long as each is smaller by a fraction than the one before; when one is not, it is the last.
std::vector<CutLevel> coarsen(CutGraph finest, const CutCaps& caps);

}  // namespace pardnn
