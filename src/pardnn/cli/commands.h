// The words of the program: one table, from which `pardnn --help` comes.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pardnn::cli {

// What people see: results on out, progress and messages on err.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;
};

enum Status : int { kDone = 0, kNo = 1, kBadUsage = 2 };

struct Command {
  std::string_view word, arguments, summary;
  // Gets the words after the command. Throws Error for bad input, UsageError for wrong usage.
  int (*run)(const std::vector<std::string>& words, Console& console);
};

std::span<const Command> commands();

// The whole program but for the process: `words` without the program's name.
int run(const std::vector<std::string>& words, Console& console);

// One per file command_….cc.
int info(const std::vector<std::string>& words, Console& console);
int plan(const std::vector<std::string>& words, Console& console);
int simulate(const std::vector<std::string>& words, Console& console);
int check(const std::vector<std::string>& words, Console& console);
int compare(const std::vector<std::string>& words, Console& console);
int generate(const std::vector<std::string>& words, Console& console);

}  // namespace pardnn::cli
