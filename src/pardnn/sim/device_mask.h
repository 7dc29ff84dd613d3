// DeviceMask: a small set of devices that is cheap to fill and to walk in ascending order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "pardnn/base/ids.h"
#include "pardnn/problem/machine.h"

namespace pardnn {

class DeviceMask {
 public:
  void set(DeviceId device) {
    words_[index(device) / 64] |= std::uint64_t{1} << index(device) % 64;
  }
  void reset(DeviceId device) {
    words_[index(device) / 64] &= ~(std::uint64_t{1} << index(device) % 64);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(DeviceId{word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))});
      }
    }
  }

 private:
  static_assert(kMaxDevices == 128);
  std::array<std::uint64_t, 2> words_{};
};

}  // namespace pardnn
