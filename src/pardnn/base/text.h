// Text as messages show it, and the check that bytes are UTF-8.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pardnn {

// The text between double quotes, on one line and of bounded length: quotes, controls and bytes
// that are not UTF-8 become \xNN, what exceeds 80 bytes becomes an ellipsis.
std::string quoted(std::string_view text);

// Whether all bytes are ASCII from space to ~, looked at eight at a time.
bool is_printable_ascii(std::string_view text);

// Position of the first byte that does not belong to well-formed UTF-8; nothing when all do.
std::optional<std::size_t> first_not_utf8(std::string_view text);

}  // namespace pardnn
