#include "pardnn/io/placement_csv.h"

#include <map>
#include <optional>

#include "pardnn/base/error.h"
#include "pardnn/io/pdg_words.h"

namespace pardnn {

namespace {

class PlacementReader {
 public:
  PlacementReader(std::string_view source, const Problem& problem)
      : source_(source), problem_(problem), device_of_(problem.units().size()) {
    const Graph& graph = problem.graph();
    // Keys are written as in graph files, so that a comma or a space in one does no harm.
    for (const OpId op : graph.ops()) {
      if (const auto unit = problem.unit(op)) units_.emplace(encode_key(graph.key(op)), *unit);
    }
    for (const VariableId variable : graph.variables()) {
      units_.emplace(encode_key(graph.key(variable)), problem.unit(variable));
    }
  }

  void line(std::string_view text) {
    ++line_;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty() || text[0] == '#' || (line_ == 1 && text == "key,device")) return;
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) fail(text, "a key, a comma and the name of a device");
    const std::string key(text.substr(0, comma));
    const std::string_view name = text.substr(comma + 1);
    const auto unit = units_.find(key);
    if (unit == units_.end()) fail(key, "the key of an op or a variable that is placed");
    const auto device = problem_.machine().find(name);
    if (!device) fail(name, "the name of a device of the machine");
    auto& known = device_of_[unit->second];
    if (known && *known != *device) {
      fail(text, key + " on " + problem_.machine().devices[*known].name +
                     ", as stated before for it or for its group");
    }
    known = device;
  }

  Placement placement() const {
    UnitPlacement units(device_of_.size());
    for (const auto& [key, unit] : units_) {
      if (!device_of_[unit]) {
        throw Error(source_ + ": found no device of " + key + ", expected one for all");
      }
      units[unit] = *device_of_[unit];
    }
    return expand(problem_, units);
  }

 private:
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    throw Error(source_ + ":" + std::to_string(line_) + ": found " + std::string(found) +
                ", expected " + std::string(expected));
  }

  const std::string source_;
  const Problem& problem_;
  std::map<std::string, UnitId> units_;
  Table<UnitId, std::optional<DeviceId>> device_of_;
  std::size_t line_ = 0;
};

}  // namespace

Placement read_placement(std::string_view text, std::string_view source, const Problem& problem) {
  PlacementReader reader(source, problem);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    reader.line(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return reader.placement();
}

std::string write_placement(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  std::string text = "key,device\n";
  const auto line = [&](std::string_view key, DeviceId device) {
    text += encode_key(key) + "," + problem.machine().devices[device].name + "\n";
  };
  for (const VariableId variable : graph.variables()) {
    line(graph.key(variable), placement.variables[variable]);
  }
  for (const OpId op : graph.ops()) {
    if (placement.ops[op]) line(graph.key(op), *placement.ops[op]);
  }
  return text;
}

}  // namespace pardnn
