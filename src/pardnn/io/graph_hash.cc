#include "pardnn/io/graph_hash.h"

#include <boost/hash2/sha2.hpp>

#include "pardnn/io/pdg_writer.h"

namespace pardnn {

std::string graph_hash(const Graph& graph) {
  boost::hash2::sha2_256 hash;
  write_pdg(graph, PdgNotes::kWithout,
            [&](std::string_view piece) { hash.update(piece.data(), piece.size()); });
  return to_string(hash.result());
}

}  // namespace pardnn
