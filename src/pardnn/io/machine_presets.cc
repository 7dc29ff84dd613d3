#include "pardnn/io/machine_presets.h"

#include <filesystem>
#include <system_error>

#include "pardnn/base/error.h"
#include "pardnn/io/files.h"
#include "pardnn/io/machine_json.h"

namespace pardnn {
namespace {

struct Preset {
  std::string_view name, text;
};

constexpr Preset kPresets[] = {
#include "pardnn/io/machine_presets.inc"  // written by CMakeLists.txt, a line for each file
};

bool is_a_name(const std::string& text) {
  std::error_code ignored;
  return text.find('/') == std::string::npos && !text.ends_with(".json") &&
         !std::filesystem::exists(text, ignored);
}

}  // namespace

std::vector<std::string_view> machine_preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

Machine find_machine(const std::string& file_or_name) {
  if (!is_a_name(file_or_name)) return read_machine(read_file(file_or_name), file_or_name);
  std::string names;
  for (const Preset& preset : kPresets) {
    if (preset.name == file_or_name) return read_machine(preset.text, file_or_name);
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  throw Error("machine: found " + file_or_name +
              ", which is no file, expected a machine file or one of " + names);
}

}  // namespace pardnn
