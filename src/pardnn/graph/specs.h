// Inputs and outputs in few words, for code that writes graphs.
#pragma once

#include <cstdint>
#include <string_view>

#include "pardnn/graph/builder.h"

namespace pardnn {

// KEY, KEY:n, ^KEY or !KEY as in a file, for keys that hold none of these signs; the key is a view
// of the text.
InputSpec input_of(std::string_view text);

OutputSpec sized(std::int64_t bytes);
OutputSpec taking_over(std::int64_t bytes, std::uint32_t input);
OutputSpec alias_of(std::uint32_t input);
OutputSpec alias_of(std::uint32_t input, std::int64_t bytes);
OutputSpec fetched(OutputSpec output);

}  // namespace pardnn
