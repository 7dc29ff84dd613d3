// Moves: shortens a line of ops by moving what is on its critical path, alone or with neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pardnn/base/random.h"
#include "pardnn/partition/line_clock.h"

namespace pardnn {

// Each try takes an op that has no time to spare and moves its unit, or a connected lump around it,
// to another device, or moves the op or the one before it within the sequence of its device. Steps
// somewhat longer than the shortest are accepted for a while (late acceptance hill climbing, Burke
// and Bykov 2017): a step may first become longer and then shorter.
class Moves {
 public:
  Moves(const Problem& problem, const Arcs& arcs);

  // Tries until so many ops and values were looked at, and moves units only where there is room.
  // The lineup becomes the shortest line that was found, or stays as it is; whether it changed. Its
  // times are to be found by a Walk.
  bool improve(Lineup& lineup, std::size_t work, Random& random, HeadRoom* room = nullptr);

 private:
  void propose(Random& random);
  void move_unit(OpId op, Random& random);
  void move_lump(OpId op, Random& random);
  void swap_units(OpId op, Random& random);
  void swap_devices(Random& random);
  void move_unit_and_in_line(OpId op, Random& random);
  void move_in_line(OpId op, Random& random);
  OpId random_tight(Random& random) const;
  const Arc* random_arc(OpId op, Random& random) const;
  DeviceId random_device(OpId op, Random& random) const;
  void move(UnitId unit, DeviceId to);

  const Problem& problem_;
  const Arcs& arcs_;
  LineClock clock_;
  bool gained_ = true;                     // when it was last asked
  std::vector<std::int64_t> accepted_ns_;  // of some tries ago, in a ring
  std::vector<UnitId> lump_;
  Table<UnitId, std::uint32_t> in_lump_;  // number of the last lump it was in
  std::uint32_t lump_number_ = 0;
};

}  // namespace pardnn
