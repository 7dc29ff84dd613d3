#include "pardnn/io/pdg_writer.h"

#include <charconv>

#include "pardnn/io/files.h"
#include "pardnn/io/gzip.h"
#include "pardnn/io/pdg_words.h"

namespace pardnn {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 16;

class Writer {
 public:
  Writer(const Graph& graph, PdgNotes notes, const std::function<void(std::string_view)>& take)
      : graph_(graph), with_notes_(notes == PdgNotes::kWith), take_(take) {}

  void run() {
    text_ = "pdg 1\n";
    if (with_notes_) about();
    kinds();
    for (const GroupId group : graph_.groups()) {
      if (graph_.pins(group).empty()) continue;
      text_ += "group ";
      text_ += encode_key(graph_.name(group));
      pins(graph_.pins(group));
      end_line();
    }
    for (const VariableId variable : graph_.variables()) write(variable);
    for (const OpId op : graph_.ops()) write(op);
    take_(text_);
  }

 private:
  void end_line() {
    text_ += '\n';
    if (text_.size() < kPieceBytes) return;
    take_(text_);
    text_.clear();
  }

  void add(std::int64_t value) {
    char digits[20];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void add_key(std::string_view key) { text_ += encode_key(key); }
  void add_bytes(std::optional<std::int64_t> bytes) {
    if (bytes) {
      add(*bytes);
    } else {
      text_ += '?';
    }
  }

  void about() {
    auto entry = graph_.about().begin();
    for (const std::uint32_t size : graph_.about_line_sizes()) {
      text_ += "about";
      for (std::uint32_t n = 0; n < size; ++n, ++entry) {
        text_ += ' ' + encode_key(entry->first) + '=' + encode_text(entry->second);
      }
      end_line();
    }
  }

  // A graph that names no kinds has the one kind `any`; the line that says so says nothing.
  void kinds() {
    if (graph_.kinds().size() == 1 && graph_.name(KindId{0}) == "any") return;
    text_ += "kind";
    for (const KindId kind : graph_.kinds()) text_ += ' ' + encode_key(graph_.name(kind));
    end_line();
  }

  void pins(const Pins& pins) {
    const auto list = [&](const char* name, const std::vector<std::string>& names) {
      for (std::size_t n = 0; n < names.size(); ++n) {
        text_ += n == 0 ? name : ",";
        add_key(names[n]);
      }
    };
    list(" on=", pins.on);
    list(" not=", pins.avoid);
  }

  void group(std::optional<GroupId> group) {
    if (!group) return;
    text_ += " @";
    add_key(graph_.name(*group));
  }

  void notes(const Notes& notes) {
    if (!with_notes_) return;
    if (notes.name) text_ += " name=" + encode_text(*notes.name);
    for (const auto& [name, value] : notes.extra) {
      text_ += ' ' + encode_key(name) + '=' + encode_text(value);
    }
  }

  void write(VariableId variable) {
    text_ += "var ";
    add_key(graph_.key(variable));
    text_ += ' ';
    add_bytes(graph_.bytes(variable));
    group(graph_.group(variable));
    pins(graph_.pins(variable));
    notes(graph_.notes(variable));
    end_line();
  }

  void write(OpId op) {
    text_ += "op ";
    add_key(graph_.key(op));
    text_ += ' ';
    add_key(graph_.type(op));
    costs(op);
    inputs(op);
    outputs(op);
    attributes(op);
    notes(graph_.notes(op));
    end_line();
  }

  void costs(OpId op) {
    const Cost first = graph_.cost(op, KindId{0});
    bool all_equal = true;
    for (const KindId kind : graph_.kinds()) all_equal &= graph_.cost(op, kind) == first;
    for (const KindId kind : graph_.kinds()) {
      text_ += index(kind) == 0 ? ' ' : ',';
      const Cost cost = graph_.cost(op, kind);
      if (cost.is_known()) {
        add(cost.ns());
      } else {
        text_ += cost.is_allowed() ? '?' : '-';
      }
      if (all_equal) return;
    }
  }

  void inputs(OpId op) {
    if (graph_.inputs(op).empty() && graph_.controls(op).empty()) return;
    text_ += " <";
    for (const Input& input : graph_.inputs(op)) {
      text_ += input.modifies() ? " !" : " ";
      if (input.is_variable()) {
        add_key(graph_.key(input.variable()));
        continue;
      }
      const Tensor& tensor = graph_.tensor(input.tensor());
      add_key(graph_.key(tensor.producer));
      if (tensor.number == 0) continue;
      text_ += ':';
      add(tensor.number);
    }
    for (const OpId before : graph_.controls(op)) {
      text_ += " ^";
      add_key(graph_.key(before));
    }
  }

  void outputs(OpId op) {
    if (graph_.outputs(op).empty()) return;
    text_ += " >";
    for (const TensorId id : graph_.outputs(op)) {
      const Tensor& tensor = graph_.tensor(id);
      text_ += ' ';
      if (tensor.alias_of) {
        const Input input = graph_.inputs(op)[*tensor.alias_of];
        text_ += '=';
        add(*tensor.alias_of);
        const auto whole = input.is_variable() ? graph_.bytes(input.variable())
                                               : graph_.tensor(input.tensor()).bytes;
        if (tensor.bytes != whole) {
          text_ += '/';
          add_bytes(tensor.bytes);
        }
      } else {
        add_bytes(tensor.bytes);
      }
      if (tensor.takes_over) {
        text_ += '~';
        add(*tensor.takes_over);
      }
      if (tensor.fetched) text_ += '*';
    }
  }

  void attributes(OpId op) {
    const auto number = [&](const char* name, std::optional<std::int64_t> value) {
      if (!value) return;
      text_ += name;
      add(*value);
    };
    group(graph_.group(op));
    if (graph_.workspace_bytes(op) > 0) number(" ws=", graph_.workspace_bytes(op));
    switch (graph_.phase(op)) {
      case Phase::kNone:
        break;
      case Phase::kForward:
        text_ += " ph=f";
        break;
      case Phase::kBackward:
        text_ += " ph=b";
        break;
      case Phase::kUpdate:
        text_ += " ph=u";
        break;
    }
    pins(graph_.pins(op));
    number(" flops=", graph_.flops(op));
    number(" moved=", graph_.moved_bytes(op));
    if (graph_.is_every(op)) text_ += " every=1";
    number(" at=", graph_.at(op));
  }

  const Graph& graph_;
  bool with_notes_;
  const std::function<void(std::string_view)>& take_;
  std::string text_;  // not yet taken
};

}  // namespace

void write_pdg(const Graph& graph, PdgNotes notes,
               const std::function<void(std::string_view)>& take) {
  Writer(graph, notes, take).run();
}

std::string write_pdg(const Graph& graph) {
  std::string text;
  write_pdg(graph, PdgNotes::kWith, [&](std::string_view piece) { text += piece; });
  return text;
}

void write_pdg_file(const Graph& graph, const std::string& path) {
  const std::string text = write_pdg(graph);
  write_file_atomically(path, path.ends_with(".gz") ? gzip(text) : text);
}

}  // namespace pardnn
