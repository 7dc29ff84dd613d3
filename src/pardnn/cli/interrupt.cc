#include "pardnn/cli/interrupt.h"

#include <csignal>

namespace pardnn::cli {

namespace {

// A signal handler reaches nothing but a global.
std::atomic<bool> stop{false};

void on_signal(int signal) {
  stop.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  stop.store(false);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>* Interrupt::flag() const { return &stop; }

}  // namespace pardnn::cli
