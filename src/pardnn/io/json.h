// JSON with messages a person can act on: every getter names the member it looked for.
//
// Only .cc files of io and report include this, since Boost.JSON stays behind it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "pardnn/base/error.h"

namespace pardnn {

// Parses a whole text. Throws Error `source:line: …` for a text that is not JSON.
boost::json::value parse_json(std::string_view text, std::string_view source);

// Two spaces a level, arrays of plain values on one line, so that a diff can be read.
std::string format_json(const boost::json::value& value);

// One object of a file, with the words to complain about it.
class JsonObject {
 public:
  // `where` is the path to the object, "devices[2]"; empty for the whole file.
  JsonObject(const boost::json::value& value, std::string_view source, std::string where);

  bool has(std::string_view name) const;
  const boost::json::value& at(std::string_view name) const;  // Error when absent
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool boolean(std::string_view name, bool otherwise) const;
  const boost::json::array& array(std::string_view name) const;
  JsonObject object(std::string_view name) const;
  // An integer, or a text that `parse` understands (700MiB, 5us); `what` says what was expected.
  std::int64_t quantity(std::string_view name,
                        std::optional<std::int64_t> (*parse)(std::string_view),
                        std::string_view what) const;
  // Error where the member that tells a file's sort is absent or states another version.
  void expect_version(std::string_view name, std::int64_t version) const;
  // Error for any member that is not among these.
  void only(std::initializer_list<std::string_view> names) const;

  // Complains about a member of this object.
  [[noreturn]] void fail(std::string_view name, std::string_view found,
                         std::string_view expected) const;
  const boost::json::object& raw() const { return *object_; }
  std::string path(std::string_view name) const;
  const std::string& source() const { return source_; }

 private:
  const boost::json::object* object_;
  std::string source_, where_;
};

// How a value reads in a message: the value itself when short, else what sort it is.
std::string describe(const boost::json::value& value);

}  // namespace pardnn
