// Rows `m-etf` and `m-sct`: list scheduling that gives no device more bytes than its part (Jeon,
// Cai, Srivastava, Jiang, Ke, Meng, Xie, Gupta, "Baechi: fast device placement of machine learning
// graphs", 2020).
#pragma once

#include "pardnn/partition/etf.h"
#include "pardnn/partition/rows.h"

namespace pardnn {

// Earliest task first; a device whose cap a unit's variables and outputs would pass is not offered
// (see cap_per_mille).
Proposal m_etf(const Problem& problem, const Run& run);

// The same with favourite children: small communication times (Hanen, Munier, "An approximation
// algorithm for scheduling dependent tasks on m processors with small communication delays", 1995).
Proposal m_sct(const Problem& problem, const Run& run);

// Edges in the order of the longest path through them, longest first, ties by the dearest
// transfer, then least ids: each makes its reader the favourite of its producer where that has none
// yet and the reader is nobody's.
FavouriteOf favourites(const Problem& problem, const Times& times);

}  // namespace pardnn
