// Gzip (RFC 1952) in memory, both ways.
#pragma once

#include <string>
#include <string_view>

namespace pardnn {

// Whether the bytes begin as gzip does; no text of ours can.
bool is_gzip(std::string_view bytes);

// Throws Error `source: …` when the bytes are damaged or cut short.
std::string gunzip(std::string_view bytes, const std::string& source);

// The same bytes for the same text on every machine: no time and no name in the header.
std::string gzip(std::string_view text);

}  // namespace pardnn
