#include "tests/properties/exhaustive.h"

#include <cstdint>
#include <vector>

#include "pardnn/base/error.h"
#include "pardnn/sim/simulate.h"

namespace pardnn::properties {
namespace {

using OpSet = std::uint32_t;  // bit n: the n-th ordinary op

class Search {
 public:
  explicit Search(const Problem& problem)
      : problem_(problem), simulator_(problem), units_(problem.units().size()) {
    const Graph& graph = problem.graph();
    Table<OpId, OpSet> behind(graph.ops().size(), 0);  // the op and all that it waits for
    for (const OpId op : graph.ops()) {
      if (graph.is_every(op)) continue;
      PARDNN_CHECK(ops_.size() < kMostExhaustiveOps);
      OpSet before = 0;
      for (const Input& input : graph.inputs(op)) {
        if (!input.is_variable()) before |= behind[graph.tensor(input.tensor()).producer];
      }
      for (const OpId producer : graph.controls(op)) before |= behind[producer];
      before_.push_back(before);
      behind[op] = before | OpSet{1} << ops_.size();
      ops_.push_back(op);
    }
  }

  std::optional<BestPlan> run() {
    place(0);
    return best_;
  }

 private:
  void place(std::uint32_t unit) {
    if (unit == units_.size()) return try_placement();
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.is_allowed(UnitId{unit}, device)) continue;
      units_[UnitId{unit}] = device;
      place(unit + 1);
    }
  }

  void try_placement() {
    placement_ = expand(problem_, units_);
    if (problem_.rules().dispatch == Dispatch::kFifo || problem_.rules().given_order) {
      sequences_ = sequences_of(problem_, placement_, ops_);
      return try_plan();
    }
    sequences_.assign(problem_.device_count(), {});
    order(0, 0);
  }

  // The device's ops that are not in `placed` follow in every order, then those of the devices
  // after it.
  void order(std::uint32_t device, OpSet placed) {
    if (device == sequences_.size()) return try_plan();
    OpSet left = 0;
    for (std::size_t n = 0; n < ops_.size(); ++n) {
      if (placement_.ops[ops_[n]] == DeviceId{device}) left |= OpSet{1} << n;
    }
    left &= ~placed;
    if (left == 0) return order(device + 1, 0);
    for (std::size_t n = 0; n < ops_.size(); ++n) {
      if ((left >> n & 1) == 0 || (left & before_[n]) != 0) continue;
      sequences_[DeviceId{device}].push_back(ops_[n]);
      order(device, placed | OpSet{1} << n);
      sequences_[DeviceId{device}].pop_back();
    }
  }

  void try_plan() {
    const auto score = simulator_.score(placement_, sequences_);
    if (!score || (best_ && *score >= best_->score)) return;
    best_ = BestPlan{placement_, sequences_, *score};
  }

  const Problem& problem_;
  Simulator simulator_;
  std::vector<OpId> ops_;      // the ordinary ones
  std::vector<OpSet> before_;  // of each: those it waits for, through any number of edges
  UnitPlacement units_;
  Placement placement_;
  Sequences sequences_;
  std::optional<BestPlan> best_;
};

}  // namespace

std::optional<BestPlan> best_of_all(const Problem& problem) { return Search(problem).run(); }

}  // namespace pardnn::properties
