#include "pardnn/graph/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "pardnn/base/error.h"
#include "pardnn/io/graph_hash.h"
#include "pardnn/io/pdg_reader.h"
#include "pardnn/io/pdg_words.h"
#include "pardnn/io/pdg_writer.h"

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace pardnn::python {

namespace {

using Names = std::vector<std::string>;

constexpr int kNotAllowed = -1;

// One field of a record; a space or a line end in it would change what the line says.
const std::string& field(const std::string& text) {
  if (text.empty() || text.find_first_of(" \t\r\n") != std::string::npos) {
    throw Error("found the field '" + text + "', expected text without spaces; escape_key helps");
  }
  return text;
}

std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + field(name);
  return text;
}

void append_pins(std::string& line, const Names& on, const Names& avoid) {
  if (!on.empty()) line += " on=" + joined(on);
  if (!avoid.empty()) line += " not=" + joined(avoid);
}

std::string bytes_text(std::optional<std::int64_t> bytes) {
  return bytes ? std::to_string(*bytes) : "?";
}

// An int is bytes, None an unknown size, a str the field itself.
std::string output_text(nb::handle output) {
  if (output.is_none()) return "?";
  if (nb::isinstance<nb::int_>(output)) return std::to_string(nb::cast<std::int64_t>(output));
  return field(nb::cast<std::string>(output));
}

std::string one_cost_text(nb::handle cost) {
  if (cost.is_none()) return "?";
  const auto ns = nb::cast<std::int64_t>(cost);
  return ns == kNotAllowed ? "-" : std::to_string(ns);
}

std::string cost_text(nb::handle cost) {
  if (cost.is_none() || nb::isinstance<nb::int_>(cost)) return one_cost_text(cost);
  std::string text;
  for (const nb::handle item : nb::cast<nb::sequence>(cost)) {
    text += (text.empty() ? "" : ",") + one_cost_text(item);
  }
  return text;
}

struct OpArguments {
  std::optional<std::string> group, phase, name;
  std::int64_t workspace = 0;
  Names on, avoid;
  std::optional<std::int64_t> flops, moved, at;
  bool every = false;
};

void append_attributes(std::string& line, const OpArguments& arguments) {
  const auto number = [&](const char* name, std::optional<std::int64_t> value) {
    if (value) line += std::string(" ") + name + "=" + std::to_string(*value);
  };
  if (arguments.group) line += " @" + field(*arguments.group);
  if (arguments.workspace != 0) number("ws", arguments.workspace);
  if (arguments.phase) line += " ph=" + field(*arguments.phase);
  append_pins(line, arguments.on, arguments.avoid);
  number("flops", arguments.flops);
  number("moved", arguments.moved);
  if (arguments.every) line += " every=1";
  number("at", arguments.at);
  if (arguments.name) line += " name=" + encode_text(*arguments.name);
}

void add_op(PythonGraph& graph, const std::string& key, const std::string& type, nb::handle cost,
            nb::sequence inputs, nb::sequence outputs, const OpArguments& arguments) {
  std::string line = "op " + field(key) + " " + field(type) + " " + cost_text(cost);
  bool first = true;
  for (const nb::handle input : inputs) {
    line += (first ? " < " : " ") + field(nb::cast<std::string>(input));
    first = false;
  }
  first = true;
  for (const nb::handle output : outputs) {
    line += (first ? " > " : " ") + output_text(output);
    first = false;
  }
  append_attributes(line, arguments);
  graph.append(line);
}

PythonGraph new_graph(const Names& kinds, const std::map<std::string, std::string>& about) {
  PythonGraph graph;
  std::string line;
  for (const auto& [key, value] : about) {
    line += " " + encode_key(key) + "=" + encode_text(value);
  }
  if (!line.empty()) graph.append("about" + line);
  line = "kind";
  for (const std::string& kind : kinds) line += " " + field(kind);
  graph.append(line);
  return graph;
}

template <class Ids>
Names keys_of(const Graph& graph, const Ids& ids) {
  Names keys;
  keys.reserve(ids.size());
  for (const auto id : ids) keys.push_back(encode_key(graph.key(id)));
  return keys;
}

void add_reading(nb::class_<PythonGraph>& graph) {
  graph
      .def_static(
          "read", [](const std::string& path) { return PythonGraph(read_pdg_file(path)); },
          "path"_a, "Read a graph file, gzipped or not; '-' is standard input.")
      .def_static(
          "parse", [](const std::string& text) { return PythonGraph(read_pdg(text, "graph")); },
          "text"_a, "The graph that a text in the format of graph files states.")
      .def(
          "write",
          [](PythonGraph& self, const std::string& path) { write_pdg_file(*self.graph(), path); },
          "path"_a, "Write the canonical graph file; a name ending in .gz is compressed.")
      .def(
          "text", [](PythonGraph& self) { return write_pdg(*self.graph()); },
          "The canonical graph file as text.")
      .def_prop_ro(
          "hash", [](PythonGraph& self) { return graph_hash(*self.graph()); },
          "SHA-256 of the canonical form without names and notes.")
      .def_prop_ro(
          "op_keys", [](PythonGraph& self) { return keys_of(*self.graph(), self.graph()->ops()); },
          "Keys of the ops, in topological order: position i is op number i.")
      .def_prop_ro(
          "var_keys",
          [](PythonGraph& self) { return keys_of(*self.graph(), self.graph()->variables()); },
          "Keys of the variables, sorted.");
}

}  // namespace

void PythonGraph::append(const std::string& line) {
  if (graph_ != nullptr) {
    throw Error("found a new record, expected none: this graph was used, and is complete");
  }
  text_ += line;
  text_ += '\n';
}

const std::shared_ptr<const Graph>& PythonGraph::graph() {
  if (graph_ == nullptr) {
    graph_ = read_pdg(text_, "graph");
    text_ = std::string();
  }
  return graph_;
}

void add_graph(nb::module_& module) {
  module.attr("NOT_ALLOWED") = kNotAllowed;
  module.def(
      "escape_key", [](const std::string& text) { return encode_key(text); }, "text"_a,
      "The legal key that stands for any text: what keys may not hold becomes %XX.");
  nb::class_<PythonGraph> graph(module, "Graph",
                                "The ops, tensors and variables of one training step.\n\n"
                                "A builder until something needs the whole graph; from then on it "
                                "does not change.");
  graph.def(
      "__init__",
      [](PythonGraph* self, const Names& kinds, const std::map<std::string, std::string>& about) {
        new (self) PythonGraph(new_graph(kinds, about));
      },
      "kinds"_a = Names{"any"}, "about"_a = std::map<std::string, std::string>{});
  graph.def(
      "group",
      [](PythonGraph& self, const std::string& name, const Names& on, const Names& avoid) {
        std::string line = "group " + field(name);
        append_pins(line, on, avoid);
        self.append(line);
      },
      "name"_a, nb::kw_only(), "on"_a = Names{}, "avoid"_a = Names{},
      "State where a group must, or must not, be: names of devices or kinds.");
  graph.def(
      "var",
      [](PythonGraph& self, const std::string& key, std::optional<std::int64_t> bytes,
         const std::optional<std::string>& group, const Names& on, const Names& avoid,
         const std::optional<std::string>& name) {
        std::string line = "var " + field(key) + " " + bytes_text(bytes);
        OpArguments arguments;
        arguments.group = group;
        arguments.on = on;
        arguments.avoid = avoid;
        arguments.name = name;
        append_attributes(line, arguments);
        self.append(line);
      },
      "key"_a, "bytes"_a.none(), nb::kw_only(), "group"_a = nb::none(), "on"_a = Names{},
      "avoid"_a = Names{}, "name"_a = nb::none(),
      "Add a variable: state that lives across steps. `bytes` is None when unknown.");
  graph.def(
      "op",
      [](PythonGraph& self, const std::string& key, const std::string& type, nb::object cost,
         nb::sequence inputs, nb::sequence outputs, const std::optional<std::string>& group,
         std::int64_t workspace, const std::optional<std::string>& phase, const Names& on,
         const Names& avoid, std::optional<std::int64_t> flops, std::optional<std::int64_t> moved,
         bool every, std::optional<std::int64_t> at, const std::optional<std::string>& name) {
        add_op(self, key, type, cost, inputs, outputs,
               {group, phase, name, workspace, on, avoid, flops, moved, at, every});
      },
      "key"_a, "type"_a, "cost"_a.none(), "inputs"_a = nb::tuple(), "outputs"_a = nb::tuple(),
      nb::kw_only(), "group"_a = nb::none(), "workspace"_a = 0, "phase"_a = nb::none(),
      "on"_a = Names{}, "avoid"_a = Names{}, "flops"_a = nb::none(), "moved"_a = nb::none(),
      "every"_a = false, "at"_a = nb::none(), "name"_a = nb::none(),
      "Add an op.\n\n"
      "cost: ns, None when unknown, NOT_ALLOWED, or a sequence of these, one per kind.\n"
      "inputs: 'KEY', 'KEY:1', '^KEY' (control edge), 'VAR', '!X' (modified), as in graph files.\n"
      "outputs: bytes, None when unknown, or as in graph files: '=0', '=0/64', '1024~1', '4*'.\n"
      "workspace: bytes that the op needs while it runs. phase: 'f', 'b' or 'u'.\n"
      "Mistakes are named when the graph is first used: pardnn.Error.");
  add_reading(graph);
}

}  // namespace pardnn::python
