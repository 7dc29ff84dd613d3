// Graphs for the commands: .pdg files, and files of other programs through pardnn-read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pardnn/graph/graph.h"
#include "pardnn/cli/options.h"

namespace pardnn::cli {

// A program of ours that failed and has said why: nothing is left to say.
struct AlreadySaid {
  int status;
};

// What files of other programs leave open, handed on to their reader.
struct ReaderOptions {
  std::vector<std::string> words;

  std::vector<Option> table();
  // The graph of a file, its format found by content. Throws Error, UsageError or AlreadySaid.
  std::shared_ptr<const Graph> read(const std::string& path) const;
};

}  // namespace pardnn::cli
