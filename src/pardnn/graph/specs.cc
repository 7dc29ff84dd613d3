#include "pardnn/graph/specs.h"

#include <charconv>

#include "pardnn/base/error.h"

namespace pardnn {

InputSpec input_of(std::string_view text) {
  InputSpec input;
  input.control = text.starts_with('^');
  input.modifies = text.starts_with('!');
  if (input.control || input.modifies) text.remove_prefix(1);
  const std::size_t colon = text.find(':');
  input.key = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view number = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), input.output);
    PARDNN_CHECK(error == std::errc() && end == number.data() + number.size());
  }
  return input;
}

OutputSpec sized(std::int64_t bytes) {
  OutputSpec output;
  output.bytes = bytes;
  return output;
}

OutputSpec taking_over(std::int64_t bytes, std::uint32_t input) {
  OutputSpec output = sized(bytes);
  output.takes_over = input;
  return output;
}

OutputSpec alias_of(std::uint32_t input) {
  OutputSpec output;
  output.alias_of = input;
  return output;
}

OutputSpec alias_of(std::uint32_t input, std::int64_t bytes) {
  OutputSpec output = alias_of(input);
  output.bytes = bytes;
  return output;
}

OutputSpec fetched(OutputSpec output) {
  output.fetched = true;
  return output;
}

}  // namespace pardnn
