// GraphDraft: what a GraphBuilder was told so far, in the order it was told, keys not yet resolved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pardnn/base/interner.h"
#include "pardnn/graph/builder.h"

namespace pardnn {

// `Symbol`: the number of a key in GraphDraft::keys. `Record`: position of an op among the ops
// added.
struct GraphDraft {
  struct InputRecord {
    std::uint32_t symbol = 0, output = 0, column = 0;
    bool control = false, modifies = false;
  };
  struct OpRecord {
    std::uint32_t symbol = 0, type = 0;
    SourcePlace place;
    std::uint32_t first_input = 0, input_count = 0;
    std::uint32_t first_output = 0, output_count = 0;
    std::uint32_t first_cost = 0, cost_count = 0;
    std::optional<std::uint32_t> group;  // number in group_names
    std::int64_t workspace_bytes = 0;
    std::optional<std::int64_t> flops, moved_bytes, at;
    Phase phase = Phase::kNone;
    bool every = false;
  };
  struct VariableRecord {
    std::uint32_t symbol = 0;
    std::optional<std::int64_t> bytes;
    std::optional<std::uint32_t> group;
    Pins pins;
    Notes notes;
    SourcePlace place;
  };
  struct GroupRecord {
    bool declared = false, has_members = false;
    Pins pins;
    SourcePlace place;
  };
  // What a key stands for: nothing yet, the op or the variable at a position.
  struct Meaning {
    enum class What : std::uint8_t { kUnknown, kOp, kVariable } what = What::kUnknown;
    std::uint32_t position = 0;
  };

  std::string source;
  std::shared_ptr<Interner> keys = std::make_shared<Interner>();  // becomes the graph's
  Interner types, group_names;
  std::vector<Meaning> meanings;    // one per key
  std::vector<GroupRecord> groups;  // one per group name
  std::vector<OpRecord> ops;
  std::vector<VariableRecord> variables;
  std::vector<InputRecord> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<Cost> costs;
  std::vector<std::pair<std::uint32_t, Pins>> op_pins;    // by record, ascending
  std::vector<std::pair<std::uint32_t, Notes>> op_notes;  // likewise
  std::vector<std::string> kinds;                         // empty until given
  std::vector<std::pair<std::string, std::string>> about;
  std::vector<std::uint32_t> about_line_sizes;
  std::vector<std::uint32_t> input_hashes;  // of the op that is being added

  std::span<const InputRecord> inputs_of(const OpRecord& op) const {
    return {inputs.data() + op.first_input, op.input_count};
  }
  std::span<const OutputSpec> outputs_of(const OpRecord& op) const {
    return {outputs.data() + op.first_output, op.output_count};
  }
  std::string_view key(const OpRecord& op) const { return (*keys)[op.symbol]; }

  // Throws Error "source:line:column: found …, expected …"; without line and column when the
  // place has none.
  [[noreturn]] void refuse(SourcePlace place, const std::string& found,
                           const std::string& expected) const;
};

}  // namespace pardnn
