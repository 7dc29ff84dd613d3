// `pardnn check`: recomputes a plan independently and says what is wrong with it.
#include <ostream>
#include <string>

#include "pardnn/base/quantity.h"
#include "pardnn/check/check.h"
#include "pardnn/cli/commands.h"
#include "pardnn/cli/graph_files.h"
#include "pardnn/cli/options.h"
#include "pardnn/cli/problem_options.h"
#include "pardnn/io/files.h"
#include "pardnn/io/plan_json.h"

namespace pardnn::cli {

int check(const std::vector<std::string>& words, Console& console) {
  bool help = false;
  ReaderOptions reader;
  const auto table = joined(
      reader.table(), {{"-h, --help", "", "this text", [&](std::string_view) { help = true; }}});
  const auto files = parse_options(words, table);
  if (help) {
    console.out << "usage: pardnn check GRAPH PLAN\n\n"
                   "Recomputes every number of a plan with code of its own and compares. Exit\n"
                   "status 1: something is wrong, or the plan does not fit; each is named.\n\n"
                << describe_options(table) << "\nexample: pardnn check step.pdg plan.json\n";
    return kDone;
  }
  if (files.size() != 2) {
    throw UsageError("found " + std::to_string(files.size()) +
                     " files, expected two, a graph and a plan");
  }
  const PlanFile file = read_plan(read_file(files[1]), files[1], reader.read(files[0]));
  const auto found = pardnn::check(file.problem, file.plan);
  for (const std::string& sentence : found) console.out << sentence << "\n";
  if (!found.empty()) return kNo;
  if (!file.plan.score.fits()) {
    console.out << "every number is right, and the plan does not fit: devices overflow by "
                << format_bytes(file.plan.score.overflow_bytes) << " together\n";
    return kNo;
  }
  console.out << "the plan is valid, it fits, and every number of it is right\n";
  return kDone;
}

}  // namespace pardnn::cli
