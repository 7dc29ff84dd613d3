// Writes graphs as .pdg text in the canonical form: one text for all files that mean the same.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pardnn/graph/graph.h"

namespace pardnn {

std::string write_pdg(const Graph& graph);

// Gzipped when the path ends with .gz; the file is whole or not there.
void write_pdg_file(const Graph& graph, const std::string& path);

// The canonical text in pieces, in order, so that a large graph needs no second copy of itself.
// Without notes, what is kept for people is left out: about, name, x-….
enum class PdgNotes { kWith, kWithout };
void write_pdg(const Graph& graph, PdgNotes notes,
               const std::function<void(std::string_view)>& take);

}  // namespace pardnn
