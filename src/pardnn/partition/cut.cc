// Row `cut`: a multilevel graph cut.
//
// Lumps of units are joined where most is exchanged, the coarsest graph is placed, and on the way
// back every level is refined (as in the partitioners of Karypis and Kumar 1998, and Fiduccia and
// Mattheyses 1982). To share out all work evenly is not enough: with the first layers on one device
// and the last on another each waits for the other. So work is shared out within slices of the
// step, one, a few or many, first by the moments at which ops could start, then by those at which
// they did start in the best placement so far. The shortest simulated step decides.
#include "pardnn/partition/cut.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "pardnn/partition/cut_coarsen.h"
#include "pardnn/partition/cut_refine.h"
#include "pardnn/partition/refine_critical_path.h"
#include "pardnn/partition/refine_ops.h"
#include "pardnn/partition/refinement.h"
#include "pardnn/partition/units.h"

namespace pardnn {
namespace {

// How often, and into how many slices each time.
constexpr std::array<std::size_t, 3> kFirst = {32, 4, 1};
constexpr std::array<std::size_t, 2> kAgain = {16, 4};
constexpr std::size_t kOpsCut = 150'000;      // over all cuts but the first: about half a second
constexpr std::size_t kOpsRefined = 300'000;  // over all moves tried in the end
constexpr std::size_t kMostMoves = 30;

class Cutter {
 public:
  Cutter(const Problem& problem, const Times& times, const Run& run)
      : problem_(problem),
        run_(run),
        bytes_(problem, cap_per_mille(problem).value_or(kNoCap)),
        units_(graph_of_units(problem, times)) {}

  UnitPlacement cut(const Table<OpId, std::int64_t>& start_ns, std::size_t slices) const {
    CutGraph finest = units_;
    const CutCaps caps = weigh(problem_, start_ns, slices, bytes_, finest);
    const std::vector<CutLevel> levels = coarsen(std::move(finest), caps);
    std::optional<CutState> state;
    for (std::size_t n = levels.size(); n-- > 0;) {
      CutState finer(levels[n].graph, caps, problem_.device_count());
      if (!state.has_value()) {
        place_lumps(finer);
      } else {
        for (const LumpId lump : levels[n].graph.lumps()) {
          finer.move(lump, *state->device(levels[n].coarser[lump]));
        }
      }
      refine_cut(finer, run_);
      state.emplace(std::move(finer));
    }
    return placement_of(*state);
  }

 private:
  UnitPlacement placement_of(const CutState& state) const {
    UnitPlacement placement(problem_.units().size(), DeviceId{});
    Table<DeviceId, std::int64_t> bytes(problem_.device_count(), 0);
    for (const UnitId unit : problem_.units()) {
      placement[unit] = *state.device(LumpId{index(unit)});
      if (!problem_.ops(unit).empty()) bytes[placement[unit]] += bytes_.bytes(unit);
    }
    place_idle_units(problem_, std::move(bytes), placement);
    return placement;
  }

  const Problem& problem_;
  const Run& run_;
  const ByteCaps bytes_;
  const CutGraph units_;
};

}  // namespace

Proposal cut(const Problem& problem, const Run& run) {
  const Times times(problem);
  const Cutter cutter(problem, times, run);
  const std::size_t ops = std::max<std::size_t>(1, problem.graph().ops().size());
  std::size_t cuts_left = kOpsCut / ops;
  const auto cut_again = [&](Refinement& refinement, std::span<const std::size_t> slices,
                             const Table<OpId, std::int64_t>& start_ns) {
    for (const std::size_t count : slices) {
      if (cuts_left == 0 || run.stopped()) return;
      --cuts_left;
      refinement.offer(cutter.cut(start_ns, count));
    }
  };
  const Table<OpId, std::int64_t> earliest_ns = earliest_starts(problem);
  Refinement refinement(problem, times, cutter.cut(earliest_ns, kFirst.front()));
  cut_again(refinement, std::span(kFirst).subspan(1), earliest_ns);
  if (!refinement.runs()) return refinement.take();
  cut_again(refinement, kAgain, Table<OpId, std::int64_t>(refinement.timeline().start_ns));
  if (!run.stopped()) refine_ops(refinement);
  follow_critical_path(refinement, static_cast<int>(std::min(kMostMoves, kOpsRefined / ops)), run);
  return refinement.take();
}

}  // namespace pardnn
