#include "pardnn/cli/commands.h"

#include <algorithm>
#include <array>
#include <new>
#include <ostream>

#include "pardnn/base/version.h"
#include "pardnn/cli/external.h"
#include "pardnn/cli/graph_files.h"
#include "pardnn/cli/options.h"

namespace pardnn::cli {

namespace {

constexpr std::array kCommands{
    Command{"plan", "GRAPH", "place a graph on a machine", plan},
    Command{"compare", "GRAPH...", "plan with several algorithms, side by side", compare},
    Command{"generate", "FAMILY", "make a graph to try things on", generate},
    Command{"simulate", "GRAPH PLAN", "when everything of a plan happens", simulate},
    Command{"check", "GRAPH PLAN", "recompute a plan independently", check},
    Command{"info", "GRAPH", "what is in a graph", info},

};

std::string overview() {
  std::string text =
      "usage: pardnn WORD ...\n\n"
      "Places the ops of a training step on several devices so that each device's memory\n"
      "limit holds and the step is short.\n\n";
  const auto line = [&](std::string_view word, std::string_view arguments,
                        std::string_view summary) {
    std::string head = "  " + std::string(word) + " " + std::string(arguments);
    constexpr std::size_t kColumn = 26;
    head.resize(std::max(head.size() + 1, kColumn), ' ');
    text += head + std::string(summary) + "\n";
  };
  for (const Command& command : kCommands) {
    line(command.word, command.arguments, command.summary);
  }
  for (const External& external : installed_externals()) {
    line(external.word, external.arguments, external.summary);
  }
  text +=
      "\n`pardnn WORD --help` tells more of each; `pardnn --version` the version.\n"
      "Exit status: 0 done, 1 a valid question whose answer is no, 2 bad input or usage.\n\n"
      "example: pardnn plan step.pdg --devices 4 --memory 16GiB -o plan.json\n";
  return text;
}

int unknown_word(const std::string& word, Console& console) {
  std::vector<std::string_view> known;
  for (const Command& command : kCommands) known.push_back(command.word);
  const std::string near = nearest(word, known);
  console.err << "pardnn: found the word " << word << ", expected one that `pardnn --help` lists"
              << (near.empty() ? "" : "; is " + near + " meant?") << "\n";
  return kBadUsage;
}

int run_command(const Command& command, const std::vector<std::string>& words, Console& console) {
  const std::string who = "pardnn " + std::string(command.word) + ": ";
  try {
    return command.run(words, console);
  } catch (const AlreadySaid& failure) {
    return failure.status;
  } catch (const UsageError& error) {
    console.err << who << error.what() << " (see pardnn " << command.word << " --help)\n";
  } catch (const Error& error) {
    console.err << who << error.what() << "\n";
  } catch (const std::bad_alloc&) {
    console.err << who << "this machine has not enough memory for it\n";
  }
  return kBadUsage;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run(const std::vector<std::string>& words, Console& console) {
  if (words.empty()) {
    console.err << overview();
    return kBadUsage;
  }
  const std::string& word = words.front();
  if (word == "--help" || word == "-h" || word == "help") {
    console.out << overview();
    return kDone;
  }
  if (word == "--version") {
    console.out << "pardnn " << kPardnnVersion << "\n";
    return kDone;
  }
  for (const Command& command : kCommands) {
    if (command.word == word) {
      return run_command(command, {words.begin() + 1, words.end()}, console);
    }
  }
  if (const auto status = run_external(word, {words.begin() + 1, words.end()})) return *status;
  return unknown_word(word, console);
}

}  // namespace pardnn::cli
