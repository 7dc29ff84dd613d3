// `pardnn info`: what is in a graph.
#include <ostream>
#include <string>

#include "pardnn/cli/commands.h"
#include "pardnn/cli/graph_files.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/graph_hash.h"
#include "pardnn/report/graph_info.h"

namespace pardnn::cli {

int info(const std::vector<std::string>& words, Console& console) {
  bool help = false, json = false;
  ReaderOptions reader;
  const auto table = joined(
      reader.table(), {{"--json", "", "as JSON", [&](std::string_view) { json = true; }},
                       {"-h, --help", "", "this text", [&](std::string_view) { help = true; }}});
  const auto files = parse_options(words, table);
  if (help) {
    console.out << "usage: pardnn info GRAPH\n\n"
                   "Counts ops, tensors, bytes and work, and lists what is unknown.\n\n"
                << describe_options(table) << "\nexample: pardnn info step.pdg\n";
    return kDone;
  }
  if (files.size() != 1) {
    throw UsageError("found " + std::to_string(files.size()) + " graphs, expected one");
  }
  const auto graph = reader.read(files.front());
  const std::string hash = graph_hash(*graph);
  console.out << (json ? graph_info_json(*graph, hash) : graph_info_text(*graph, hash));
  return kDone;
}

}  // namespace pardnn::cli
