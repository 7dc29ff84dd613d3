// Whole files: read in one go, written so that a reader sees the old file or the new one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pardnn {

inline constexpr std::size_t kWholeFile = static_cast<std::size_t>(-1);

// As many of its first bytes as asked for and there. "-" stands for standard input. Throws Error
// naming the path and the system's reason.
std::string read_file(const std::string& path, std::size_t most_bytes = kWholeFile);

// Writes to a temporary name beside the file and renames it; on failure the temporary file is
// removed, the old file kept, and Error names the path and the system's reason. What is there and
// is no ordinary file (a pipe, a terminal) is written to as it is; "-" stands for standard output.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace pardnn
