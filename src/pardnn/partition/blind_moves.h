// Blind moves: random changes of a proposal, each simulated whole.
#pragma once

#include <cstddef>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/partition/arcs.h"
#include "pardnn/partition/best.h"

namespace pardnn {

// For small graphs where memory is scarce: nothing cheaper than the simulator knows what a change
// does to the peaks. A try makes one to three changes: a unit goes to another device, two units
// change places, an op goes to another place of the order that its edges allow. A worse score is
// accepted for a while (late acceptance, as in Moves).
class BlindMoves {
 public:
  BlindMoves(const Problem& problem, const Arcs& arcs);

  // The best of the proposal and of what so many tries found, in place; its score.
  Score improve(Proposal& proposal, const Score& score, std::size_t tries, Trial& trial,
                Random& random);

 private:
  void change(Proposal& proposal, Random& random);
  void move_unit(Proposal& proposal, Random& random) const;
  void swap_units(Proposal& proposal, Random& random) const;
  void move_in_order(Proposal& proposal, Random& random);

  const Problem& problem_;
  const Arcs& arcs_;
  std::int64_t all_limits_bytes_ = 0;
  std::vector<Score> accepted_;        // of some tries ago, in a ring
  Table<OpId, std::size_t> position_;  // in the order that is changed
};

}  // namespace pardnn
