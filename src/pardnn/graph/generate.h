// Families of graphs to try planners on: networks of every common shape, and small nasty graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "pardnn/graph/graph.h"

namespace pardnn {

struct Family {
  std::string_view name, summary;
  // A graph of about this many ops (what whole blocks of the family allow, at least one block);
  // the same for the same size and seed on every machine.
  std::shared_ptr<const Graph> (*make)(std::size_t ops, std::uint64_t seed);
};

// All there are. Costs are analytical and say so in `about`; the graphs obey all rules of the
// model, and all but `kinds` (gpu and cpu) run on devices of any kind, `mixed` if one is named d0.
std::span<const Family> families();

// Nothing when there is no family of that name.
const Family* find_family(std::string_view name);

}  // namespace pardnn
