// Reads graphs from .pdg files: one op a line, version 1 of the format.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pardnn/graph/graph.h"

namespace pardnn {

// Throws Error `source:line:column: found …, expected …` for whatever is not such a file, and for
// what GraphBuilder refuses.
std::shared_ptr<const Graph> read_pdg(std::string_view text, std::string source);

// Whether a text is meant as a .pdg file, well formed or not: its first line that is neither blank
// nor a comment begins with the word pdg, or there is none.
bool is_meant_as_pdg(std::string_view text);

// The same from a file, gzipped or not as its content says; "-" is standard input.
std::shared_ptr<const Graph> read_pdg_file(const std::string& path);

}  // namespace pardnn
