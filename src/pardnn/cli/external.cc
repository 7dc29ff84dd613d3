#include "pardnn/cli/external.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <unistd.h>

#include "pardnn/base/error.h"

namespace pardnn::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::array kOwn{
    External{"convert", "FILE OUT.pdg", "keep the graph of another program's file"},
    External{"run", "SCRIPT...", "train an unchanged script over several devices"},
};

bool is_plain_word(const std::string& word) {
  return !word.empty() && word[0] != '-' && word.find('/') == std::string::npos;
}

}  // namespace

std::optional<fs::path> find_program(const std::string& name) {
  std::vector<fs::path> folders;
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (!failure) folders.push_back(self.parent_path());
  if (const char* path = std::getenv("PATH")) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');) {
      folders.emplace_back(part.empty() ? "." : part);
    }
  }
  for (const fs::path& folder : folders) {
    const fs::path program = folder / name;
    if (fs::is_regular_file(program, failure) && access(program.c_str(), X_OK) == 0) {
      return program;
    }
  }
  return std::nullopt;
}

std::vector<External> installed_externals() {
  std::vector<External> installed;
  for (const External& external : kOwn) {
    if (find_program("pardnn-" + std::string(external.word))) installed.push_back(external);
  }
  return installed;
}

std::optional<int> run_external(const std::string& word, const std::vector<std::string>& words) {
  if (!is_plain_word(word)) return std::nullopt;
  const auto program = find_program("pardnn-" + word);
  if (!program) return std::nullopt;
  std::string path = program->string();
  std::vector<std::string> texts{path};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  throw Error(path + ": cannot be started: " + std::strerror(errno));
}

}  // namespace pardnn::cli
