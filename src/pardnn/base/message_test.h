// message_of: what is said when something is refused. For tests only.
#pragma once

#include <string>

#include "pardnn/base/error.h"

namespace pardnn {

template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace pardnn
