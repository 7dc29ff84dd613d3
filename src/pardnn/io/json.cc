#include "pardnn/io/json.h"

#include <algorithm>

#include <boost/json/src.hpp>

namespace pardnn {

namespace json = boost::json;

namespace {

bool is_plain(const json::value& value) {
  if (value.is_object()) return value.get_object().empty();
  if (value.is_array()) {
    return std::all_of(value.get_array().begin(), value.get_array().end(),
                       [](const json::value& item) { return !item.is_structured(); });
  }
  return true;
}

void append(std::string& text, const json::value& value, std::size_t indent) {
  const std::string margin(indent + 2, ' ');
  if (is_plain(value)) {
    if (!value.is_array()) {
      text += json::serialize(value);
      return;
    }
    text += '[';
    bool first = true;
    for (const json::value& item : value.get_array()) {
      if (!first) text += ", ";
      first = false;
      text += json::serialize(item);
    }
    text += ']';
    return;
  }
  const bool is_array = value.is_array();
  text += is_array ? '[' : '{';
  bool first = true;
  const auto item = [&](const json::value& child, std::string_view name) {
    if (!first) text += ',';
    first = false;
    text += '\n' + margin;
    if (!is_array) text += json::serialize(json::string(name)) + ": ";
    append(text, child, indent + 2);
  };
  if (is_array) {
    for (const json::value& child : value.get_array()) item(child, {});
  } else {
    for (const auto& member : value.get_object()) item(member.value(), member.key());
  }
  text += '\n' + std::string(indent, ' ');
  text += is_array ? ']' : '}';
}

}  // namespace

json::value parse_json(std::string_view text, std::string_view source) {
  json::stream_parser parser;
  boost::system::error_code failure;
  std::size_t read = parser.write_some(text.data(), text.size(), failure);
  if (!failure && read < text.size()) {
    const std::string_view rest = text.substr(read);
    if (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) {
      failure = json::error::extra_data;
    }
  }
  if (!failure) {
    parser.finish(failure);
    read = text.size();
  }
  if (failure) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(read), '\n');
    throw Error(std::string(source) + ":" + std::to_string(line) + ": found " + failure.message() +
                ", expected JSON");
  }
  return parser.release();
}

std::string format_json(const json::value& value) {
  std::string text;
  append(text, value, 0);
  text += '\n';
  return text;
}

std::string describe(const json::value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = json::serialize(value);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

JsonObject::JsonObject(const json::value& value, std::string_view source, std::string where)
    : object_(value.if_object()), source_(source), where_(std::move(where)) {
  if (object_ == nullptr) {
    throw Error(source_ + ": " + (where_.empty() ? "" : where_ + ": ") + "found " +
                describe(value) + ", expected an object");
  }
}

std::string JsonObject::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : where_ + "." + std::string(name);
}

void JsonObject::fail(std::string_view name, std::string_view found,
                      std::string_view expected) const {
  throw Error(source_ + ": " + path(name) + ": found " + std::string(found) + ", expected " +
              std::string(expected));
}

bool JsonObject::has(std::string_view name) const { return object_->contains(name); }

const json::value& JsonObject::at(std::string_view name) const {
  const json::value* value = object_->if_contains(name);
  if (value == nullptr) fail(name, "nothing", "a value");
  return *value;
}

std::string JsonObject::text(std::string_view name) const {
  const json::value& value = at(name);
  if (!value.is_string()) fail(name, describe(value), "a text");
  return std::string(value.get_string());
}

std::string JsonObject::text(std::string_view name, std::string_view otherwise) const {
  return has(name) ? text(name) : std::string(otherwise);
}

std::int64_t JsonObject::integer(std::string_view name) const {
  const json::value& value = at(name);
  if (!value.is_int64()) fail(name, describe(value), "an integer");
  return value.get_int64();
}

std::int64_t JsonObject::integer(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

bool JsonObject::boolean(std::string_view name, bool otherwise) const {
  if (!has(name)) return otherwise;
  const json::value& value = at(name);
  if (!value.is_bool()) fail(name, describe(value), "true or false");
  return value.get_bool();
}

const json::array& JsonObject::array(std::string_view name) const {
  const json::value& value = at(name);
  if (!value.is_array()) fail(name, describe(value), "a list");
  return value.get_array();
}

JsonObject JsonObject::object(std::string_view name) const {
  return JsonObject(at(name), source_, path(name));
}

std::int64_t JsonObject::quantity(std::string_view name,
                                  std::optional<std::int64_t> (*parse)(std::string_view),
                                  std::string_view what) const {
  const json::value& value = at(name);
  if (value.is_int64() && value.get_int64() >= 0) return value.get_int64();
  if (value.is_string()) {
    const auto parsed = parse(std::string_view(value.get_string()));
    if (parsed) return *parsed;
  }
  fail(name, describe(value), what);
}

void JsonObject::expect_version(std::string_view name, std::int64_t version) const {
  if (has(name) && integer(name) == version) return;
  fail(name, has(name) ? describe(at(name)) : "nothing",
       std::to_string(version) + ", the version of this file");
}

void JsonObject::only(std::initializer_list<std::string_view> names) const {
  for (const auto& member : *object_) {
    const std::string_view key = member.key();
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    std::string known;
    for (const std::string_view name : names) {
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail(key, "a member of this name", "only " + known);
  }
}

}  // namespace pardnn
