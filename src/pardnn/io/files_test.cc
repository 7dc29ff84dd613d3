// Whole files and gzip: what is written is read again, and what is damaged is refused.
#include "pardnn/io/files.h"

#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "pardnn/base/message_test.h"
#include "pardnn/io/gzip.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_writer.h"

using namespace pardnn;

namespace {

// A folder of its own for one test.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pardnn-test-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  std::size_t count() const {
    const std::filesystem::directory_iterator all(path);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  std::filesystem::path path;
};

// A text that does not compress to nothing: the numbers 0, 1, 2, … one a line.
std::string many_lines(int count) {
  std::string text;
  for (std::int64_t n = 0; n < count; ++n) text += std::to_string(n * 7919 % 100'003) + '\n';
  return text;
}

// "pdg 1\nop a T 0\n" by `gzip -9` of GNU gzip, with a file name and a time in the header.
std::string from_gnu_gzip() {
  constexpr std::string_view hex =
      "1f8b08081e740f6b0203677a2e747874002b48495730e4ca2f504854085130e00200e8ce66700f000000";
  std::string bytes;
  for (std::size_t n = 0; n < hex.size(); n += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(n, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(files)

BOOST_FIXTURE_TEST_CASE(a_file_is_read_as_it_was_written, Folder) {
  const std::string text = many_lines(100'000);
  write_file_atomically(file("a"), text);
  BOOST_TEST((read_file(file("a")) == text));
  BOOST_TEST((read_file(file("a"), 10) == text.substr(0, 10)));
  BOOST_TEST((read_file(file("a"), text.size() + 1) == text));
  write_file_atomically(file("a"), "");
  BOOST_TEST(read_file(file("a")).empty());
  BOOST_TEST(count() == 1);
}

BOOST_FIXTURE_TEST_CASE(a_file_that_is_replaced_keeps_its_mode_and_its_link, Folder) {
  write_file_atomically(file("a"), "old");
  BOOST_REQUIRE(::chmod(file("a").c_str(), 0640) == 0);
  std::filesystem::create_symlink("a", file("link"));
  write_file_atomically(file("link"), "new");
  BOOST_TEST(read_file(file("a")) == "new");
  BOOST_TEST(std::filesystem::is_symlink(file("link")));
  struct stat status{};
  BOOST_REQUIRE(::stat(file("a").c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0640);
}

BOOST_FIXTURE_TEST_CASE(what_fails_names_the_path_and_the_reason, Folder) {
  BOOST_TEST(message_of([&] { read_file(file("none")); }) ==
             file("none") + ": cannot be opened: No such file or directory");
  BOOST_TEST(message_of([&] { read_file(path.string()); }) ==
             path.string() + ": cannot be read: Is a directory");
  BOOST_TEST(message_of([&] { write_file_atomically(file("none/a"), "x"); }) ==
             file("none/a") + ": cannot be written: No such file or directory");
}

// /dev/full is a device that is always full.
BOOST_AUTO_TEST_CASE(a_full_disk_is_reported) {
  BOOST_TEST(message_of([] { write_file_atomically("/dev/full", "x"); }) ==
             "/dev/full: cannot be written: No space left on device");
}

BOOST_FIXTURE_TEST_CASE(a_pipe_is_written_to_as_it_is, Folder) {
  BOOST_REQUIRE(::mkfifo(file("pipe").c_str(), 0600) == 0);
  const int reader = ::open(file("pipe").c_str(), O_RDWR);
  BOOST_REQUIRE(reader >= 0);
  write_file_atomically(file("pipe"), "abc");
  char got[8];
  BOOST_TEST(::read(reader, got, sizeof got) == 3);
  ::close(reader);
  BOOST_TEST(std::filesystem::is_fifo(file("pipe")));
}

BOOST_AUTO_TEST_CASE(gzip_gives_back_what_it_took) {
  for (const int count : {0, 1, 500'000}) {
    const std::string text = many_lines(count);
    const std::string bytes = gzip(text);
    BOOST_TEST(is_gzip(bytes));
    BOOST_TEST((gunzip(bytes, "t") == text));
  }
  BOOST_TEST(gzip(many_lines(500'000)).size() < many_lines(500'000).size() / 2);
}

BOOST_AUTO_TEST_CASE(members_one_after_another_are_one_text) {
  BOOST_TEST(gunzip(gzip("pdg 1\n") + gzip("op a T 0\n"), "t") == "pdg 1\nop a T 0\n");
}

BOOST_AUTO_TEST_CASE(the_beginning_of_a_gzip_file_can_be_had_alone) {
  const std::string text(100'000, 'x');
  BOOST_TEST(gunzip_begin(gzip("pdg 1\n" + text), 6) == "pdg 1\n");
  BOOST_TEST(gunzip_begin(gzip("pdg 1\n"), 1000) == "pdg 1\n");
  const std::string bytes = gzip("pdg 1\n");
  BOOST_TEST(gunzip_begin(std::string_view(bytes).substr(0, 5), 1000).empty());
}

BOOST_AUTO_TEST_CASE(files_of_other_programs_are_read) {
  BOOST_TEST(gunzip(from_gnu_gzip(), "t") == "pdg 1\nop a T 0\n");
}

BOOST_AUTO_TEST_CASE(damaged_gzip_is_refused) {
  const std::string bytes = gzip(many_lines(1000));
  for (std::size_t size = 2; size < bytes.size(); size += 97) {
    BOOST_TEST(message_of([&] { gunzip(std::string_view(bytes).substr(0, size), "t"); }) ==
               "t: found a gzip file that is cut short, expected a whole gzip file");
  }
  std::string wrong = bytes;
  wrong[wrong.size() - 6] ^= 1;
  BOOST_TEST(message_of([&] { gunzip(wrong, "t"); }) ==
             "t: found a damaged gzip file (its checksum differs), expected a whole gzip file");
  wrong = bytes;
  wrong[10] = static_cast<char>(0xFF);  // a block type that does not exist
  BOOST_TEST(message_of([&] { gunzip(wrong, "t"); }).starts_with("t: found a damaged gzip file ("));
  BOOST_TEST(message_of([&] { gunzip(bytes + std::string(20, '\0'), "t"); }) ==
             "t: found bytes behind the end of a gzip file, expected a whole gzip file");
  wrong = bytes;
  wrong[2] = 7;
  BOOST_TEST(message_of([&] { gunzip(wrong, "t"); }) ==
             "t: found a gzip file of an unknown method, expected a whole gzip file");
}

// 64 MiB are read whatever they shrink to, a byte more only from a file of more than a 250th.
BOOST_AUTO_TEST_CASE(a_small_file_that_grows_without_end_is_refused) {
  BOOST_TEST(most_unzipped_bytes(1000) == 67'108'864u);
  BOOST_TEST(most_unzipped_bytes(1'000'000) == 250'000'000u);
  std::string text(67'108'864, 'x');
  BOOST_TEST((gunzip(gzip(text), "t") == text));
  const std::string bytes = gzip(text + 'x');
  BOOST_TEST(bytes.size() < 268'435u);
  BOOST_TEST(message_of([&] { gunzip(bytes, "t"); }) ==
             "t: found a gzip file of " + std::to_string(bytes.size()) +
                 " bytes with more than 67108864 in it, expected a graph; if it is one, unpack the "
                 "file before");
  // In pieces it is as much.
  BOOST_TEST(message_of([&] { gunzip(gzip(text) + gzip("x"), "t"); }).find("with more than") !=
             std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_graph_is_gzipped_by_suffix_and_read_by_content, Folder) {
  const auto graph = read_pdg("pdg 1\nop a T 0 > 4\n", "t");
  write_pdg_file(*graph, file("g.pdg"));
  write_pdg_file(*graph, file("g.pdg.gz"));
  BOOST_TEST(read_file(file("g.pdg")) == "pdg 1\nop a T 0 > 4\n");
  BOOST_TEST(is_gzip(read_file(file("g.pdg.gz"))));
  std::filesystem::rename(file("g.pdg.gz"), file("unnamed"));
  BOOST_TEST(write_pdg(*read_pdg_file(file("unnamed"))) == "pdg 1\nop a T 0 > 4\n");
}

BOOST_FIXTURE_TEST_CASE(messages_about_a_file_name_its_path, Folder) {
  std::ofstream(file("bad.pdg")) << "pdg 1\nop\n";
  BOOST_TEST(message_of([&] { read_pdg_file(file("bad.pdg")); }) ==
             file("bad.pdg") + ":2:3: found the end of the line, expected the key of an op");
}

BOOST_AUTO_TEST_SUITE_END()
