// Heads and tails: lower bounds on when an op can start, and on what must follow it.
#pragma once

#include "pardnn/plan/relaxed.h"

namespace pardnn {

// In every plan: start(op) >= head_ns[op], and step - finish(op) >= tail_ns[op]. 0 for `every` ops.
struct HeadsAndTails {
  Table<OpId, std::int64_t> head_ns, tail_ns;
};

// Above the longest path, because what an op waits for was either made on its own device, one thing
// after another, or has crossed to it. For op v let u be an ancestor and its *key* the head of u +
// its time + the times strictly between on a path to v + the least crossing on that path: if u is
// not on v's device something on the path crosses, so start(v) >= key. From keys follows what holds
// whichever ancestors are on v's device (together.h). Ops of v's own unit are there for certain;
// ops that may run on none of v's devices are not, and their key holds by itself.
//
// Beside it, ancestors share the devices. What has a head >= h runs after h; on v's device it ends
// at the latest a path before start(v), on every other one a path with a crossing before. With m
// devices in use the work w fits only if w <= m * (start(v) - h) - path - (m - 1) * apart, `path`
// and `apart` being the least among the ops; the best m is 1 or all.
//
// Last, an ancestor a with several ways to v, the anchor. If a is on v's device, ops between the
// two that are elsewhere must come and go: their key is finish(a) + way in + time + way out, a
// crossing in each. If it is not, then v >= key of a; an op between the two must come if it is on
// v's device, go if it is on a's, and both elsewhere: keys from a's side and from v's, and the work
// on these two devices until the first op elsewhere would be too late. The lesser of the two cases
// holds.
//
// Only some ancestors are looked at (window.h); leaving any out makes all of this smaller. Tails
// are heads of the reversed graph. Contention only delays, so the bounds hold with and without.
// O(ops * window * log window); the window is smaller for larger graphs.
HeadsAndTails heads_and_tails(const Problem& problem, const Relaxed& relaxed);

}  // namespace pardnn
