// Refinement of paths, step 1d 1 of ParDNN.
#include "pardnn/partition/refine_paths.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "pardnn/partition/loads.h"

namespace pardnn {
namespace {

struct Path {
  std::size_t cluster;
  std::vector<UnitId> units;
  std::int64_t work_ns = 0;
  DeviceId here{}, around{};  // its device, and the one where all its neighbours lie
  bool moved = false;
};

class PathRefinement {
 public:
  PathRefinement(const Problem& problem, const Flow& flow, const Slicing& slicing,
                 UnitPlacement placement)
      : problem_(problem), flow_(flow), slicing_(slicing), loads_(problem, flow, placement) {
    for (std::size_t n = slicing.primary_count; n < slicing.clusters.size(); ++n) {
      if (auto path = enclosed_path(n)) paths_.push_back(std::move(*path));
    }
    std::stable_sort(paths_.begin(), paths_.end(),
                     [](const Path& a, const Path& b) { return a.work_ns > b.work_ns; });
    for (std::size_t n = paths_.size(); n-- > 0;) {
      mirrors_[{paths_[n].here, paths_[n].around}].push_back(n);  // work ascending
    }
  }

  // Whether anything moved.
  bool run() {
    bool any = false;
    for (Path& path : paths_) {
      if (path.moved || !may_move(path)) continue;
      const bool done = try_swap(path) || try_moves({{&path, path.around}});
      any |= done;
    }
    return any;
  }

  const UnitPlacement& placement() const { return loads_.placement(); }

 private:
  // Nothing when the path lies on several devices or its neighbours do, or it has none.
  std::optional<Path> enclosed_path(std::size_t cluster) const {
    Path path{.cluster = cluster, .units = {}};
    const std::vector<NodeId>& nodes = slicing_.clusters[cluster];
    path.here = loads_.device(nodes.front());
    std::optional<DeviceId> around;
    bool enclosed = true;
    const auto meet = [&](NodeId neighbour) {
      if (slicing_.cluster_of[neighbour] == ClusterId{static_cast<std::uint32_t>(cluster)}) return;
      enclosed &= !around.has_value() || *around == loads_.device(neighbour);
      around = loads_.device(neighbour);
    };
    for (const NodeId node : nodes) {
      enclosed &= loads_.device(node) == path.here;
      path.work_ns = saturating_add(path.work_ns, flow_.time_ns(node));
      path.units.push_back(loads_.unit(node));
      for (const ValueId value : flow_.read(node)) meet(flow_.value(value).maker);
      for (const ValueId value : flow_.made(node)) {
        for (const NodeId reader : flow_.readers(value)) meet(reader);
      }
    }
    if (!enclosed || !around.has_value() || *around == path.here) return std::nullopt;
    path.around = *around;
    std::sort(path.units.begin(), path.units.end());
    path.units.erase(std::unique(path.units.begin(), path.units.end()), path.units.end());
    return path;
  }

  // Earlier moves of the pass may have taken some of its units along.
  bool may_move(const Path& path) const {
    return std::all_of(path.units.begin(), path.units.end(), [&](UnitId unit) {
      return loads_.placement()[unit] == path.here && problem_.is_allowed(unit, path.around);
    });
  }

  bool try_swap(Path& path) {
    const auto found = mirrors_.find({path.around, path.here});
    if (found == mirrors_.end()) return false;
    const std::vector<std::size_t>& mirrors = found->second;
    const std::int64_t wanted_ns =
        path.work_ns - (loads_.load_ns(path.here) - loads_.load_ns(path.around)) / 2;
    auto it = std::lower_bound(
        mirrors.begin(), mirrors.end(), wanted_ns,
        [&](std::size_t mirror, std::int64_t ns) { return paths_[mirror].work_ns < ns; });
    const auto distance = [&](auto at) { return std::abs(paths_[*at].work_ns - wanted_ns); };
    if (it == mirrors.end() || (it != mirrors.begin() && distance(it - 1) <= distance(it))) --it;
    Path& mirror = paths_[*it];
    if (mirror.moved || !may_move(mirror)) return false;
    return try_moves({{&path, path.around}, {&mirror, path.here}});
  }

  bool try_moves(const std::vector<std::pair<Path*, DeviceId>>& moves) {
    const std::int64_t before_ns = loads_.greatest_ns();
    std::vector<std::pair<UnitId, DeviceId>> undo;
    for (const auto& [path, to] : moves) {
      for (const UnitId unit : path->units) {
        undo.emplace_back(unit, loads_.placement()[unit]);
        loads_.move(unit, to);
      }
    }
    if (loads_.greatest_ns() < before_ns) {
      for (const auto& [path, to] : moves) path->moved = true;
      return true;
    }
    for (auto it = undo.rbegin(); it != undo.rend(); ++it) loads_.move(it->first, it->second);
    return false;
  }

  const Problem& problem_;
  const Flow& flow_;
  const Slicing& slicing_;
  Loads loads_;
  std::vector<Path> paths_;  // heaviest first
  std::map<std::pair<DeviceId, DeviceId>, std::vector<std::size_t>> mirrors_;
};

}  // namespace

void refine_paths(Refinement& refinement, const Flow& flow, const Slicing& slicing) {
  PathRefinement pass(refinement.problem(), flow, slicing, refinement.placement());
  if (pass.run()) refinement.offer(pass.placement());
}

}  // namespace pardnn
