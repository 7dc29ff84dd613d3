// More devices: a machine made larger by devices like its last one.
#pragma once

#include <cstddef>

#include "pardnn/problem/machine.h"

namespace pardnn {

// Each new device has the kind, the memory and the links of the last device, and links with that
// one like those of its first neighbour. Channels that are a link's own are a new link's own, too;
// those that links share are shared by the new ones. A machine of one device states no link: links
// are then what the command line takes for granted.
Machine with_more_devices(const Machine& machine, std::size_t more);

}  // namespace pardnn
