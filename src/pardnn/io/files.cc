#include "pardnn/io/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "pardnn/base/error.h"

namespace pardnn {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

// A file that is open; closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ > 2) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  // Some systems report a full disk only here.
  bool close() {
    const int number = number_;
    number_ = -1;
    return number <= 2 || ::close(number) == 0;
  }

 private:
  int number_;
};

[[noreturn]] void refuse(const std::string& path, const char* what, int reason) {
  throw Error(path + ": " + what + ": " + std::strerror(reason));
}

// True when all was written; errno says why not.
bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void write_in_place(const std::string& path, int number, std::string_view bytes) {
  Descriptor file(number);
  if (number < 0 || !write_all(number, bytes) || !file.close()) {
    refuse(path, "cannot be written", errno);
  }
}

}  // namespace

std::string read_file(const std::string& path, std::size_t most_bytes) {
  const bool is_input = path == "-";
  const std::string name = is_input ? "standard input" : path;
  const Descriptor file(is_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) refuse(name, "cannot be opened", errno);
  std::string bytes;
  struct stat status{};
  if (::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.reserve(std::min(static_cast<std::size_t>(status.st_size) + 1, most_bytes));
  }
  while (true) {
    const std::size_t size = bytes.size();
    if (size >= most_bytes) return bytes;
    const std::size_t next = bytes.capacity() > size ? bytes.capacity() : size + kPieceBytes;
    bytes.resize(std::min(next, most_bytes));
    const ssize_t count = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    bytes.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return bytes;
    if (count < 0 && errno != EINTR) refuse(name, "cannot be read", errno);
  }
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  if (path == "-") return write_in_place("standard output", STDOUT_FILENO, bytes);
  struct stat status{};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    return write_in_place(path, ::open(path.c_str(), O_WRONLY | O_CLOEXEC), bytes);
  }
  // A link stays a link: what it points to is replaced.
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::canonical(path, error);
  const std::string target = error ? path : resolved.string();
  std::string temporary;
  int number = -1;
  for (int attempt = 0; number < 0; ++attempt) {
    temporary = target + ".tmp-" + std::to_string(::getpid()) + '-' + std::to_string(attempt);
    number = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0 && errno != EEXIST) refuse(path, "cannot be written", errno);
  }
  Descriptor file(number);
  const bool kept_mode = !exists || ::fchmod(number, status.st_mode & 07777) == 0;
  if (!kept_mode || !write_all(number, bytes) || !file.close() ||
      ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    refuse(path, "cannot be written", reason);
  }
}

}  // namespace pardnn
