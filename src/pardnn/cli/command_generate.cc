// `pardnn generate`: makes a graph of a family, to try things on.
#include <ostream>
#include <string>

#include "pardnn/base/integers.h"
#include "pardnn/graph/generate.h"
#include "pardnn/cli/commands.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/pdg_writer.h"

namespace pardnn::cli {

namespace {

constexpr std::int64_t kMostOps = 10'000'000;

const Family& find_family(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Family& family : families()) {
    if (family.name == name) return family;
    known.push_back(family.name);
  }
  const std::string near = nearest(name, known);
  throw UsageError("found the family " + name + ", expected one that --help lists" +
                   (near.empty() ? "" : "; is " + near + " meant?"));
}

}  // namespace

int generate(const std::vector<std::string>& words, Console& console) {
  bool help = false;
  std::int64_t ops = 1000, seed = 0;
  std::string output = "-";
  const std::vector<Option> table{
      {"--ops", "N", "about how many ops (1000)",
       [&](std::string_view text) { ops = integer_of("--ops", text, 1, kMostOps); }},
      {"--seed", "N", "of the random choices (0)",
       [&](std::string_view text) { seed = integer_of("--seed", text, 0, kMaxQuantity); }},
      {"-o, --output", "FILE", "write there, compressed when it ends in .gz (standard output)",
       [&](std::string_view text) { output = text; }},
      {"-h, --help", "", "this text", [&](std::string_view) { help = true; }}};
  const auto names = parse_options(words, table);
  if (help) {
    console.out << "usage: pardnn generate FAMILY [--ops N] [--seed N] [-o FILE]\n\n"
                   "Makes the graph of a training step of one of these families:\n\n";
    for (const Family& family : families()) {
      std::string head = "  " + std::string(family.name);
      head.resize(std::max<std::size_t>(22, head.size() + 1), ' ');
      console.out << head << family.summary << "\n";
    }
    console.out << "\n"
                << describe_options(table)
                << "\nexample: pardnn generate transformer --ops 10000 -o step.pdg\n";
    return kDone;
  }
  if (names.size() != 1) {
    throw UsageError("found " + std::to_string(names.size()) + " families, expected one");
  }
  const auto graph = find_family(names.front())
                         .make(static_cast<std::size_t>(ops), static_cast<std::uint64_t>(seed));
  if (output == "-") {
    console.out << write_pdg(*graph);
  } else {
    write_pdg_file(*graph, output);
  }
  return kDone;
}

}  // namespace pardnn::cli
