// Errors: what a user did wrong (Error, with the whole message) and what we did wrong (CHECK).
#pragma once

#include <stdexcept>
#include <string>

namespace pardnn {

// Bad input, option or environment. The text names the place, what was found and what was
// expected; it is shown to the user as it stands.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A promise of our own code that does not hold: a defect of pardnn, never of its input.
class BrokenPromise : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void broken_promise(const char* condition, const char* file, int line);

}  // namespace pardnn

#define PARDNN_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::pardnn::broken_promise(#condition, __FILE__, __LINE__))
