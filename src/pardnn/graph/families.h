// The makers behind the table of generate.cc, one per family.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "pardnn/graph/graph.h"

namespace pardnn {

using MakeGraph = std::shared_ptr<const Graph>(std::size_t ops, std::uint64_t seed);

MakeGraph make_chain, make_diamonds, make_layered, make_residual, make_inception;
MakeGraph make_char_rnn, make_word_rnn, make_grid, make_transformer, make_experts;
MakeGraph make_isolated, make_two_components, make_zero_costs, make_star, make_mixed, make_kinds;

// The graph of as many blocks as come closest to a number of ops. `build` makes the graph of a
// number of blocks; ops grow with blocks nearly as a straight line, which two small graphs show,
// and two larger ones better where there are many blocks.
template <class Build>
std::shared_ptr<const Graph> of_about(std::size_t ops, const Build& build) {
  const auto blocks_by = [&](std::size_t few, std::size_t more) {
    const std::size_t least = build(few)->ops().size(), most = build(more)->ops().size();
    const std::size_t fixed = least - std::min(least, few * (most - least) / (more - few));
    const std::size_t wanted = (ops - std::min(ops, fixed)) * (more - few);
    return std::max<std::size_t>(1, (wanted + (most - least) / 2) / (most - least));
  };
  constexpr std::size_t kMany = 192;
  std::size_t blocks = blocks_by(2, 6);
  if (blocks > kMany) blocks = blocks_by(kMany / 3, kMany);
  return build(blocks);
}

}  // namespace pardnn
