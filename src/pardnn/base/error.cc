#include "pardnn/base/error.h"

namespace pardnn {

void broken_promise(const char* condition, const char* file, int line) {
  throw BrokenPromise(std::string(file) + ":" + std::to_string(line) +
                      ": pardnn broke its own promise: " + condition);
}

}  // namespace pardnn
