// Words that are programs of their own: `pardnn run` starts `pardnn-run`, as git does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pardnn::cli {

struct External {
  std::string_view word, arguments, summary;
};

// Those of our own that are installed beside this program or on the PATH, for the overview.
std::vector<External> installed_externals();

// A program beside this one or on the PATH.
std::optional<std::filesystem::path> find_program(const std::string& name);

// Becomes pardnn-WORD, looked for beside this program first and on the PATH then; does not come
// back when there is one. Nothing when there is none.
std::optional<int> run_external(const std::string& word, const std::vector<std::string>& words);

}  // namespace pardnn::cli
