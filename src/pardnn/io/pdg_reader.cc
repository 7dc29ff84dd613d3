#include "pardnn/io/pdg_reader.h"

#include <algorithm>
#include <cstring>

#include "pardnn/base/error.h"
#include "pardnn/base/text.h"
#include "pardnn/graph/builder.h"
#include "pardnn/io/files.h"
#include "pardnn/io/gzip.h"
#include "pardnn/io/pdg_words.h"

namespace pardnn {
namespace {

constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;

// The attributes of a line, each at most once.
enum Attribute : std::uint32_t {
  kGroup = 1,
  kWorkspace = 2,
  kPhase = 4,
  kOn = 8,
  kNot = 16,
  kFlops = 32,
  kMoved = 64,
  kEvery = 128,
  kAt = 256,
  kName = 512,
};

std::string hex(unsigned char byte) {
  constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
}

class Reader {
 public:
  Reader(std::string_view text, std::string source)
      : rest_(text), source_(source), builder_(std::move(source)) {}

  std::shared_ptr<const Graph> run() {
    try {
      first_line();
      builder_.reserve(static_cast<std::size_t>(std::ranges::count(rest_, '\n')));
      while (next_line()) record();
    } catch (const PdgFault& fault) {
      refuse(fault.at, fault.found, fault.expected);
    }
    return builder_.build();
  }

 private:
  [[noreturn]] void refuse(const char* at, const std::string& found,
                           const std::string& expected) const {
    throw Error(source_ + ':' + std::to_string(line_number_) + ':' + std::to_string(column(at)) +
                ": found " + found + ", expected " + expected);
  }
  std::uint32_t column(const char* at) const {
    return static_cast<std::uint32_t>(at - line_begin_) + 1;
  }
  SourcePlace place(std::string_view word) const { return {line_number_, column(word.data())}; }

  // Moves to the next line; false at the end of the text.
  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_begin_ = rest_.data();
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_number_;
    words_.clear();
    if (line_.size() > kMostLineBytes) {
      refuse(line_begin_, "a line of " + std::to_string(line_.size()) + " bytes",
             "at most 1 MiB, 1048576 bytes");
    }
    if (!is_printable_ascii(line_)) check_bytes();
    return true;
  }

  void check_bytes() const {
    for (const char& c : line_) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte != 0x7F) continue;
      if (byte == '\r') refuse(&c, "a carriage return", "lines that end with a line feed alone");
      if (byte == '\t') refuse(&c, "a tab", "spaces between words");
      refuse(&c, "the byte " + hex(byte), "text without control characters");
    }
    if (const auto at = first_not_utf8(line_)) {
      refuse(&line_[*at], "the byte " + hex(static_cast<unsigned char>(line_[*at])), "UTF-8 text");
    }
  }

  void first_line() {
    line_begin_ = rest_.data();
    line_number_ = 1;
    if (rest_.empty()) refuse(line_begin_, "an empty file", "pdg 1");
    if (rest_.starts_with("\xEF\xBB\xBF")) refuse(line_begin_, "a byte order mark", "pdg 1");
    line_number_ = 0;
    next_line();
    if (line_.starts_with("pdg ") && line_ != "pdg 1") {
      refuse(line_begin_ + 4, "version " + quoted(line_.substr(4)),
             "1, the version that this pardnn reads");
    }
    if (line_ != "pdg 1") refuse(line_begin_, quoted(line_), "pdg 1");
  }

  // The next word of the line without taking it; empty at the end of the line.
  std::string_view peek() {
    const char *from = line_.data(), *const end = from + line_.size();
    while (from != end && *from == ' ') ++from;
    line_.remove_prefix(static_cast<std::size_t>(from - line_.data()));
    const void* space = from == end ? nullptr : std::memchr(from, ' ', line_.size());
    return {from, static_cast<std::size_t>((space ? static_cast<const char*>(space) : end) - from)};
  }
  void pass(std::string_view word) { line_.remove_prefix(word.size()); }
  std::string_view take() {
    const std::string_view word = peek();
    pass(word);
    return word;
  }
  std::string_view take(const char* expected) {
    const std::string_view word = take();
    if (word.empty()) refuse(word.data(), "the end of the line", expected);
    return word;
  }

  void record() {
    const std::string_view word = take();
    if (word.empty() || word.starts_with('#')) return;
    if (word == "op") return op();
    if (word == "var") return variable();
    if (word == "group") return group();
    if (word == "kind") return kinds(word);
    if (word == "about") return about();
    refuse(word.data(), quoted(word), "about, kind, group, var, op or a comment");
  }

  void about() {
    std::vector<std::pair<std::string, std::string>> entries;
    for (std::string_view word = take("KEY=TEXT"); !word.empty(); word = take()) {
      const std::size_t sign = word.find('=');
      if (sign == std::string_view::npos) refuse(word.data(), quoted(word), "KEY=TEXT");
      const std::string_view key = words_.key(word.substr(0, sign));
      entries.emplace_back(key, words_.text(word.substr(sign + 1)));
    }
    builder_.about(std::move(entries));
  }

  void kinds(std::string_view record) {
    std::vector<std::string> names;
    for (std::string_view word = take("the name of a kind of device"); !word.empty();
         word = take()) {
      names.emplace_back(words_.key(word));
    }
    builder_.kinds(std::move(names), place(record));
  }

  void group() {
    const std::string_view word = take("the name of a group");
    const std::string_view name = words_.key(word);
    Line line;
    attributes(line, kOn | kNot, "on=, not=");
    builder_.group(name, std::move(line.pins), place(word));
  }

  void variable() {
    const std::string_view word = take("the key of a variable");
    VariableSpec spec;
    spec.key = words_.key(word);
    spec.place = place(word);
    const std::string_view size = take("the size of the variable in bytes, or ?");
    if (size != "?") spec.bytes = PdgWords::bytes(size);
    Line line;
    attributes(line, kGroup | kOn | kNot | kName, "@GROUP, on=, not=, name= or x-…=");
    spec.group = line.group;
    spec.pins = std::move(line.pins);
    spec.notes = std::move(line.notes);
    builder_.variable(spec);
  }

  void op() {
    const std::string_view word = take("the key of an op");
    op_.key = words_.key(word);
    op_.place = place(word);
    op_.type = words_.key(take("the type of the op"));
    op_.costs.clear();
    PdgWords::costs(take("the cost of the op"), op_.costs);
    op_.inputs.clear();
    if (peek() == "<") inputs();
    op_.outputs.clear();
    if (peek() == ">") outputs();
    Line line;
    attributes(line, ~std::uint32_t{0}, "an attribute of an op");
    op_.group = line.group;
    op_.workspace_bytes = line.workspace_bytes;
    op_.phase = line.phase;
    op_.pins = std::move(line.pins);
    op_.flops = line.flops;
    op_.moved_bytes = line.moved_bytes;
    op_.at = line.at;
    op_.every = (line.seen & kEvery) != 0;
    op_.notes = std::move(line.notes);
    builder_.op(op_);
  }

  static bool is_attribute(std::string_view word) {
    return word.starts_with('@') || word.find('=', 1) != std::string_view::npos;
  }

  void inputs() {
    const char* sign = take().data();
    for (std::string_view word = peek(); !word.empty() && word != ">" && !is_attribute(word);
         word = peek()) {
      pass(word);
      op_.inputs.push_back(words_.input(word));
      op_.inputs.back().place = place(word);
    }
    if (op_.inputs.empty()) refuse(sign, "< without an input", "at least one after it");
  }

  void outputs() {
    const char* sign = take().data();
    for (std::string_view word = peek(); !word.empty() && !is_attribute(word); word = peek()) {
      pass(word);
      if (word == "<") refuse(word.data(), "< behind >", "inputs before outputs");
      op_.outputs.push_back(PdgWords::output(word));
      op_.outputs.back().place = place(word);
    }
    if (op_.outputs.empty()) refuse(sign, "> without an output", "at least one after it");
  }

  // The attributes that a line gave.
  struct Line {
    std::uint32_t seen = 0;
    std::optional<std::string_view> group;
    std::int64_t workspace_bytes = 0;
    Phase phase = Phase::kNone;
    Pins pins;
    std::optional<std::int64_t> flops, moved_bytes, at;
    Notes notes;
  };

  void attributes(Line& line, std::uint32_t allowed, const char* expected) {
    for (std::string_view word = take(); !word.empty(); word = take()) {
      if (word.starts_with('@')) {
        once(line, kGroup, allowed, word, expected);
        line.group = words_.key(word.substr(1));
        continue;
      }
      const std::size_t sign = word.find('=');
      const std::string_view name = word.substr(0, sign);
      if (sign == std::string_view::npos || sign == 0) refuse(word.data(), quoted(word), expected);
      const std::string_view value = word.substr(sign + 1);
      if (name.starts_with("x-") && (allowed & kName) != 0) {
        extra(line, name, value);
      } else {
        attribute(line, allowed, expected, word, name, value);
      }
    }
  }

  void extra(Line& line, std::string_view name, std::string_view value) {
    const std::string plain(words_.key(name));
    auto& all = line.notes.extra;
    const auto at =
        std::ranges::lower_bound(all, plain, {}, &std::pair<std::string, std::string>::first);
    if (at != all.end() && at->first == plain) {
      refuse(name.data(), quoted(name) + " a second time", "each attribute at most once");
    }
    all.emplace(at, plain, words_.text(value));
  }

  void once(Line& line, std::uint32_t attribute, std::uint32_t allowed, std::string_view word,
            const char* expected) const {
    if ((allowed & attribute) == 0) refuse(word.data(), quoted(word), expected);
    if ((line.seen & attribute) != 0) {
      refuse(word.data(), quoted(word) + " as a second one of its name",
             "each attribute at most once");
    }
    line.seen |= attribute;
  }

  void attribute(Line& line, std::uint32_t allowed, const char* expected, std::string_view word,
                 std::string_view name, std::string_view value) {
    const auto is = [&](std::string_view other, Attribute attribute) {
      if (name != other) return false;
      once(line, attribute, allowed, word, expected);
      return true;
    };
    if (is("ws", kWorkspace)) {
      line.workspace_bytes = PdgWords::bytes(value);
    } else if (is("ph", kPhase)) {
      line.phase = phase(value);
    } else if (is("on", kOn)) {
      line.pins.on = words_.keys(value);
    } else if (is("not", kNot)) {
      line.pins.avoid = words_.keys(value);
    } else if (is("flops", kFlops)) {
      line.flops = PdgWords::integer(value);
    } else if (is("moved", kMoved)) {
      line.moved_bytes = PdgWords::bytes(value);
    } else if (is("every", kEvery)) {
      if (value != "1") refuse(value.data(), quoted(value), "1");
    } else if (is("at", kAt)) {
      line.at = PdgWords::integer(value);
    } else if (is("name", kName)) {
      line.notes.name = words_.text(value);
    } else {
      refuse(word.data(), quoted(word),
             allowed == ~std::uint32_t{0} ? "@GROUP, ws=, ph=, on=, not=, flops=, moved=, every=, "
                                            "at=, name= or x-…="
                                          : expected);
    }
  }

  Phase phase(std::string_view value) const {
    if (value == "f") return Phase::kForward;
    if (value == "b") return Phase::kBackward;
    if (value == "u") return Phase::kUpdate;
    refuse(value.data(), quoted(value), "f, b or u");
  }

  std::string_view rest_;  // of the text
  std::string_view line_;  // what is left of the line
  const char* line_begin_ = nullptr;
  std::uint32_t line_number_ = 0;
  std::string source_;
  GraphBuilder builder_;
  PdgWords words_;
  OpSpec op_;  // kept from line to line for its memory
};

}  // namespace

std::shared_ptr<const Graph> read_pdg(std::string_view text, std::string source) {
  return Reader(text, std::move(source)).run();
}

bool is_meant_as_pdg(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '#') {
      const std::string_view word = line.substr(begin);
      return word.starts_with("pdg") && (word.size() == 3 || word[3] == ' ' || word[3] == '\t');
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

std::shared_ptr<const Graph> read_pdg_file(const std::string& path) {
  const std::string source = path == "-" ? "standard input" : path;
  std::string bytes = read_file(path);
  if (is_gzip(bytes)) bytes = gunzip(bytes, source);
  return read_pdg(bytes, source);
}

}  // namespace pardnn
