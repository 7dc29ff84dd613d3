// The version of pardnn, stated once in pyproject.toml and handed over by the build.
#pragma once

#include <string_view>

namespace pardnn {

inline constexpr std::string_view kPardnnVersion = PARDNN_VERSION;

}  // namespace pardnn
