// The program `pardnn`: hands its words to run() and turns a defect of ours into one message.
#include <exception>
#include <iostream>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string>
#include <unistd.h>
#include <vector>

#include "pardnn/cli/commands.h"

int main(int count, char** words) {
#ifdef __GLIBC__
  // What one thread freed serves the others too: a quarter less memory on large graphs.
  mallopt(M_ARENA_MAX, 1);
#endif
  std::ios::sync_with_stdio(false);
  pardnn::cli::Console console{std::cout, std::cerr, isatty(STDERR_FILENO) == 1};
  try {
    const int status =
        pardnn::cli::run(std::vector<std::string>(words + 1, words + count), console);
    std::cout.flush();
    if (!std::cout) {
      std::cerr << "pardnn: the output could not be written\n";
      return pardnn::cli::kBadUsage;
    }
    return status;
  } catch (const std::exception& error) {
    std::cerr << "pardnn: this is a defect of pardnn, please report it: " << error.what() << "\n";
    return 70;
  }
}
