// Refinement of ops, step 1d 2 of ParDNN.
#include "pardnn/partition/refine_ops.h"

#include <optional>

#include "pardnn/partition/edges.h"
#include "pardnn/partition/orders.h"
#include "pardnn/partition/transfers.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

constexpr int kPasses = 3;

struct Neighbours {
  std::optional<DeviceId> readers;  // where all of them lie; nothing when they are mixed or none
  bool producers_there = true;      // all producers lie there too
};

Neighbours neighbours(const Problem& problem, const UnitPlacement& placement, UnitId unit) {
  const Graph& graph = problem.graph();
  Neighbours answer;
  bool mixed = false;
  for (const OpId op : problem.ops(unit)) {
    for_each_reader(graph, op, [&](OpId reader, std::optional<TensorId>) {
      const UnitId other = *problem.unit(reader);
      if (other == unit) return;
      mixed |= answer.readers.has_value() && *answer.readers != placement[other];
      answer.readers = placement[other];
    });
  }
  if (mixed) answer.readers.reset();
  if (!answer.readers.has_value()) return answer;
  for (const OpId op : problem.ops(unit)) {
    for_each_producer(graph, op, [&](OpId producer, std::optional<TensorId>) {
      const UnitId other = *problem.unit(producer);
      answer.producers_there &= other == unit || placement[other] == *answer.readers;
    });
  }
  return answer;
}

bool worth_moving(const Refinement& refinement, const UnitPlacement& placement, UnitId unit,
                  DeviceId to, bool producers_there) {
  const Problem& problem = refinement.problem();
  const TransferChange change = transfer_change(problem, refinement.times(), placement, unit, to);
  std::int64_t own_ns = 0;
  for (const OpId op : problem.ops(unit)) {
    own_ns = saturating_add(own_ns, problem.duration_ns(op, to));
  }
  const std::int64_t saved_ns = change.saved_ns - change.added_ns;
  return producers_there ? own_ns <= saved_ns : own_ns < saved_ns;
}

}  // namespace

void refine_ops(Refinement& refinement) {
  const Problem& problem = refinement.problem();
  const std::vector<UnitId> units = lineup(problem, id_order(problem.graph()));
  for (int pass = 0; pass < kPasses; ++pass) {
    UnitPlacement placement = refinement.placement();
    bool moved = false;
    for (const UnitId unit : units) {
      const Neighbours around = neighbours(problem, placement, unit);
      if (!around.readers.has_value() || *around.readers == placement[unit]) continue;
      const DeviceId to = *around.readers;
      if (!problem.is_allowed(unit, to)) continue;
      if (!worth_moving(refinement, placement, unit, to, around.producers_there)) continue;
      placement[unit] = to;
      moved = true;
    }
    if (!moved || !refinement.offer(std::move(placement))) return;
  }
}

}  // namespace pardnn
