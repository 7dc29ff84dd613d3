// The machines that properties are tried on: one where all is equal, one where nothing is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pardnn/problem/machine.h"

namespace pardnn::properties {

// Equal devices and links of their own, 12 GB/s, 5 us of overhead and of latency.
Machine even_machine(std::size_t devices, std::int64_t capacity_bytes);

// gpu and cpu by turns, capacities and reserves that differ, links of three speeds: through one
// switch between the halves of the machine, through a port of each sender, or a pair's own.
// Buffers are rounded up to `granularity_bytes`. With `is_slow` a byte takes about 1 ns, so that
// small graphs feel it.
Machine uneven_machine(std::size_t devices, std::int64_t capacity_bytes,
                       std::int64_t granularity_bytes, bool is_slow = false);

}  // namespace pardnn::properties
