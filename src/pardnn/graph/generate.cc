#include "pardnn/graph/generate.h"

#include <array>

#include "pardnn/graph/families.h"

namespace pardnn {
namespace {

constexpr std::array<Family, 16> kFamilies{{
    {"chain", "one layer after another: product, bias, activation", make_chain},
    {"diamonds", "layers that fork into branches and join again", make_diamonds},
    {"layered", "layers that read several earlier ones, picked at random", make_layered},
    {"residual", "a wide residual network of convolutions", make_residual},
    {"inception", "blocks of parallel convolutions whose results are joined", make_inception},
    {"char-rnn", "a wide recurrent cell of several layers, unrolled over many steps",
     make_char_rnn},
    {"word-rnn", "recurrent layers between an embedding and a large softmax", make_word_rnn},
    {"grid",
     "convolutional recurrent layers, unrolled over time, with attention to the last outputs",
     make_grid},
    {"transformer", "blocks of attention and feed-forward layers", make_transformer},
    {"experts", "a transformer whose feed-forward layers are mixtures of experts", make_experts},
    {"isolated", "ops without any edge", make_isolated},
    {"two-components", "two networks that share nothing", make_two_components},
    {"zero-costs", "a network whose costs are all zero", make_zero_costs},
    {"star", "one large tensor that all ops read", make_star},
    {"mixed", "every feature of the format except kinds, many times", make_mixed},
    {"kinds", "ops that run on gpu, on cpu or on both, at different costs", make_kinds},
}};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

}  // namespace pardnn
