// Starts: plans made before, as proposals that `auto` takes into account.
#pragma once

#include <string_view>
#include <vector>

#include "pardnn/partition/rows.h"

namespace pardnn {

// The plan as a proposal; its order is that of its starts.
Start start_of(const Problem& problem, const Plan& plan);

// One graph planned under several limits, from the tightest to the loosest: what was found under a
// tighter limit is a candidate of `auto` under all looser ones, whichever row found it. So `auto`
// is never worse under a looser limit.
class Ladder {
 public:
  Plan plan(const Problem& problem, std::string_view algorithm, const Run& run);
  // From here on limits are looser: no device has less memory, all else is the same.
  void loosen();

 private:
  std::vector<Start> tighter_, here_;
};

}  // namespace pardnn
