// Gzip (RFC 1952) in memory, both ways.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pardnn {

// Whether the bytes begin as gzip does; no text of ours can.
bool is_gzip(std::string_view bytes);

// What a file of so many bytes may hold: 64 MiB in any case, else 250 times its size. Graphs shrink
// to a tenth, at most to a fortieth; what shrinks more was made to fill a machine's memory.
std::size_t most_unzipped_bytes(std::size_t zipped_bytes);

// Throws Error `source: …` when the bytes are damaged or cut short, or hold more than that.
std::string gunzip(std::string_view bytes, const std::string& source);

// The first bytes of what is in it, as far as they can be had: empty for what is damaged.
std::string gunzip_begin(std::string_view bytes, std::size_t size);

// The same bytes for the same text on every machine: no time and no name in the header.
std::string gzip(std::string_view text);

}  // namespace pardnn
