#include "pardnn/io/gzip.h"

#include <algorithm>
#include <cstdint>

#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/beast/zlib/inflate_stream.hpp>
#include <boost/crc.hpp>

#include "pardnn/base/error.h"

namespace pardnn {
namespace {

namespace zlib = boost::beast::zlib;

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
// Method 8 (deflate), no flags, no time, no extra flags, unknown system.
constexpr std::string_view kHeader("\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\xFF", 10);
constexpr std::size_t kTrailerBytes = 8;

enum Flag : unsigned { kHeaderCrc = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 0xE0 };

std::uint32_t crc_of(std::string_view text) {
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  return crc.checksum();
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t n = 4; n-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[n]);
  return value;
}

class Unzipper {
 public:
  Unzipper(std::string_view bytes, std::string source, std::size_t most_bytes)
      : rest_(bytes), source_(std::move(source)), most_bytes_(most_bytes) {}

  // A file may hold several members one after another; they are one text.
  std::string run() {
    std::string text;
    do {
      header();
      const std::size_t from = text.size();
      inflate(text);
      trailer(std::string_view(text).substr(from));
    } while (!rest_.empty());
    return text;
  }

  // What one piece of the output holds.
  std::string begin() {
    header();
    std::string text(most_bytes_, '\0');
    zlib::inflate_stream stream;
    zlib::z_params state;
    state.next_in = rest_.data();
    state.avail_in = rest_.size();
    state.next_out = text.data();
    state.avail_out = text.size();
    boost::system::error_code ignored;
    stream.write(state, zlib::Flush::sync, ignored);
    text.resize(text.size() - state.avail_out);
    return text;
  }

 private:
  [[noreturn]] void refuse(const std::string& found) const {
    throw Error(source_ + ": found " + found + ", expected a whole gzip file");
  }

  std::string_view take(std::size_t size) {
    if (rest_.size() < size) refuse("a gzip file that is cut short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  void take_text() {
    const std::size_t end = rest_.find('\0');
    if (end == std::string_view::npos) refuse("a gzip file that is cut short");
    take(end + 1);
  }

  void header() {
    const std::string_view fixed = take(kHeader.size());
    const auto flags = static_cast<unsigned char>(fixed[3]);
    if (!is_gzip(fixed)) refuse("bytes behind the end of a gzip file");
    if (fixed[2] != 8 || (flags & kReserved) != 0) refuse("a gzip file of an unknown method");
    if ((flags & kExtra) != 0) {
      const std::string_view size = take(2);
      take(static_cast<std::size_t>(static_cast<unsigned char>(size[0])) |
           static_cast<std::size_t>(static_cast<unsigned char>(size[1])) << 8);
    }
    if ((flags & kName) != 0) take_text();
    if ((flags & kComment) != 0) take_text();
    if ((flags & kHeaderCrc) != 0) take(2);
  }

  void inflate(std::string& text) {
    zlib::inflate_stream stream;
    zlib::z_params state;
    state.next_in = rest_.data();
    state.avail_in = rest_.size();
    boost::system::error_code error;
    std::size_t size = text.size();
    do {
      // One byte more than may be, so that what is too long shows.
      text.resize(std::min(size + std::max(kPieceBytes, size), most_bytes_ + 1));
      state.next_out = text.data() + size;
      state.avail_out = text.size() - size;
      stream.write(state, zlib::Flush::sync, error);
      size = text.size() - state.avail_out;
      if (size > most_bytes_) {
        throw Error(source_ + ": found a gzip file of " + std::to_string(whole_size_) +
                    " bytes with more than " + std::to_string(most_bytes_) +
                    " in it, expected a graph; if it is one, unpack the file before");
      }
    } while (!error);
    text.resize(size);
    if (error == zlib::error::need_buffers) refuse("a gzip file that is cut short");
    if (error != zlib::error::end_of_stream) {
      refuse("a damaged gzip file (" + error.message() + ")");
    }
    rest_.remove_prefix(rest_.size() - state.avail_in);
  }

  void trailer(std::string_view text) {
    const std::string_view bytes = take(kTrailerBytes);
    if (little_endian(bytes) != crc_of(text) ||
        little_endian(bytes.substr(4)) != static_cast<std::uint32_t>(text.size())) {
      refuse("a damaged gzip file (its checksum differs)");
    }
  }

  std::string_view rest_;
  const std::string source_;
  const std::size_t whole_size_ = rest_.size();
  const std::size_t most_bytes_;
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with(kHeader.substr(0, 2)); }

std::size_t most_unzipped_bytes(std::size_t zipped_bytes) {
  constexpr std::size_t kAlways = std::size_t{1} << 26, kTimes = 250;
  return std::max(kAlways, zipped_bytes * kTimes);
}

std::string gunzip(std::string_view bytes, const std::string& source) {
  return Unzipper(bytes, source, most_unzipped_bytes(bytes.size())).run();
}

std::string gunzip_begin(std::string_view bytes, std::size_t size) {
  try {
    return Unzipper(bytes, "", size).begin();
  } catch (const Error&) {
    return {};
  }
}

std::string gzip(std::string_view text) {
  std::string bytes(kHeader);
  zlib::deflate_stream stream;
  zlib::z_params state;
  state.next_in = text.data();
  state.avail_in = text.size();
  boost::system::error_code error;
  std::size_t size = bytes.size();
  do {
    bytes.resize(size + kPieceBytes);
    state.next_out = bytes.data() + size;
    state.avail_out = kPieceBytes;
    stream.write(state, zlib::Flush::finish, error);
    size = bytes.size() - state.avail_out;
  } while (!error);
  PARDNN_CHECK(error == zlib::error::end_of_stream);
  bytes.resize(size);
  for (const std::uint32_t value : {crc_of(text), static_cast<std::uint32_t>(text.size())}) {
    for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  }
  return bytes;
}

}  // namespace pardnn
