// GraphBuilder: takes ops and variables in any order, names what is wrong with them, and builds the
// Graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pardnn/graph/graph.h"

namespace pardnn {

struct GraphDraft;

// Where a record was written, for messages. Line 0: built by program, messages name the key only.
struct SourcePlace {
  std::uint32_t line = 0, column = 0;
};

struct InputSpec {
  std::string_view key;      // of an op or a variable
  std::uint32_t output = 0;  // which output of the op
  bool control = false;      // ^KEY
  bool modifies = false;     // !X
  SourcePlace place;
};

struct OutputSpec {
  std::optional<std::int64_t> bytes;  // nothing: unknown, or, for an alias, the size of its input
  std::optional<std::uint32_t> alias_of, takes_over;
  bool fetched = false;
  SourcePlace place;
};

struct OpSpec {
  std::string_view key, type;
  std::vector<Cost> costs;  // one for all kinds, or one per kind
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::optional<std::string_view> group;
  std::int64_t workspace_bytes = 0;
  Phase phase = Phase::kNone;
  Pins pins;
  std::optional<std::int64_t> flops, moved_bytes, at;
  bool every = false;
  Notes notes;
  SourcePlace place;
};

struct VariableSpec {
  std::string_view key;
  std::optional<std::int64_t> bytes;
  std::optional<std::string_view> group;
  Pins pins;
  Notes notes;
  SourcePlace place;
};

// Keys are plain text here: the %XX of the file is undone by its reader. Texts are copied.
class GraphBuilder {
 public:
  // `source` stands before line numbers in messages: a file's name, or a word for a program.
  explicit GraphBuilder(std::string source = "graph");
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Makes room for this many ops of the ordinary sort; only speed depends on it.
  void reserve(std::size_t ops);

  void about(std::string key, std::string value);  // a line of one entry
  void about(std::vector<std::pair<std::string, std::string>> entries);
  void kinds(std::vector<std::string> names, SourcePlace place = {});  // at most once
  void group(std::string_view name, Pins pins, SourcePlace place = {});
  void variable(const VariableSpec& spec);
  void op(const OpSpec& spec);

  // Throws Error with `source:line:column: found …, expected …` for what the rules forbid: an
  // unknown input, a cycle (its ops are named), a variable touched from another group, a buffer
  // modified from another group, `every` ops that depend on others, `at` given for some ops only,
  // sizes whose sum is too large. A key given twice, or an alias of an input that is not there, is
  // refused as soon as it is added. That ops are ordered as rule M4 asks is checked by Problem.
  // A builder builds once; when building failed it keeps what was added.
  std::shared_ptr<const Graph> build();

 private:
  std::unique_ptr<GraphDraft> draft_;
};

}  // namespace pardnn
