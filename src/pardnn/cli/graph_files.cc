#include "pardnn/cli/graph_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "pardnn/cli/commands.h"
#include "pardnn/cli/external.h"
#include "pardnn/io/files.h"
#include "pardnn/io/gzip.h"
#include "pardnn/io/pdg_reader.h"

extern char** environ;

namespace pardnn::cli {
namespace {

constexpr std::size_t kBeginBytes = std::size_t{1} << 16;
constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
constexpr std::string_view kReader = "pardnn-read";

// The reader, whose standard output comes here; its messages go where ours go.
class Reader {
 public:
  Reader(const std::string& program, std::vector<std::string> words) : program_(program) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse("cannot be started", errno);
    output_ = ends[0];
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int failure =
        ::posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failure != 0) refuse("cannot be started", failure);
  }
  ~Reader() {
    if (output_ >= 0) ::close(output_);
    if (process_ > 0) wait();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::string text() {
    std::string text;
    while (true) {
      const std::size_t size = text.size();
      text.resize(size + kPieceBytes);
      const ssize_t count = ::read(output_, text.data() + size, kPieceBytes);
      text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      if (count == 0) return text;
      if (count < 0 && errno != EINTR) refuse("its output cannot be read", errno);
    }
  }

  // How it ended, as wait() says it.
  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

 private:
  [[noreturn]] void refuse(const char* what, int reason) const {
    throw Error(program_ + ": " + what + ": " + std::strerror(reason));
  }

  std::string program_;
  pid_t process_ = -1;
  int output_ = -1;
};

std::shared_ptr<const Graph> read_foreign(const std::string& path,
                                          const std::vector<std::string>& options) {
  const auto program = find_program(std::string(kReader));
  if (!program) {
    throw Error(path + ": found a file that is no .pdg, and no program " + std::string(kReader) +
                ", expected the Python package of pardnn, which has it (pip install pardnn)");
  }
  std::vector<std::string> words{program->string()};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", path});
  Reader reader(program->string(), std::move(words));
  const std::string text = reader.text();
  const int status = reader.wait();
  if (WIFSIGNALED(status)) {
    throw Error(path + ": found that " + std::string(kReader) + " was ended by signal " +
                std::to_string(WTERMSIG(status)) + ", expected that it reads the file");
  }
  if (WEXITSTATUS(status) != 0) throw AlreadySaid{WEXITSTATUS(status)};
  return read_pdg(text, path + ", as " + std::string(kReader) + " writes it");
}

}  // namespace

std::vector<Option> ReaderOptions::table() {
  const auto hand_on = [this](const char* name, const char* value, const char* help) {
    return Option{name, value, help, [this, name](std::string_view text) {
                    words.push_back(std::string(name) + "=" + std::string(text));
                  }};
  };
  return {
      hand_on("--dim", "NAME=N",
              "a dimension that a file of another program leaves open: batch=32"),
      hand_on("--shape", "NAME=N,N,...", "the shape of an input of such a file: data=32,3,224,224"),
      hand_on("--trips", "N", "how often loops of such a file run that do not say it"),
      hand_on("--costs", "FILE", "measured times for such a file"),
      hand_on("--member", "NAME", "which file of an archive"),
  };
}

std::shared_ptr<const Graph> ReaderOptions::read(const std::string& path) const {
  std::error_code failure;
  if (path == "-" || !std::filesystem::is_regular_file(path, failure)) return read_pdg_file(path);
  std::string begin = read_file(path, kBeginBytes);
  if (is_gzip(begin)) begin = gunzip_begin(begin, kBeginBytes);
  if (!is_meant_as_pdg(begin)) return read_foreign(path, words);
  if (!words.empty()) {
    throw UsageError(path + ": found " + words.front() +
                     " with a .pdg file, expected it with files that leave this open");
  }
  return read_pdg_file(path);
}

}  // namespace pardnn::cli
