// Interrupt: while it lives, the first Ctrl-C sets a flag instead of ending the program.
#pragma once

#include <atomic>

namespace pardnn::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Set by the first SIGINT or SIGTERM; the second ends the program as usual.
  const std::atomic<bool>* flag() const;
};

}  // namespace pardnn::cli
