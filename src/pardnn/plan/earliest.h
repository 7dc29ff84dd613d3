// Heads and tails: lower bounds on when an op can start, and on what must follow it.
#pragma once

#include "pardnn/plan/relaxed.h"

namespace pardnn {

// In every plan: start(op) >= head_ns[op], and step - finish(op) >= tail_ns[op]. 0 for `every` ops.
struct HeadsAndTails {
  Table<OpId, std::int64_t> head_ns, tail_ns;
};

// Above the longest path, because what an op waits for was either made on the op's own device, one
// thing after another, or has crossed to it. For op v let u be an ancestor, and its *key* the head
// of u + its time + the times strictly between on some path + the least crossing on that path: if u
// is not on v's device, something on the path crosses, so start(v) >= key. Take any ancestors u1,
// u2, …, uJ by falling key, and let S(j) be a bound on when one device can have done u1 … uj, each
// after its head and with its path to v still to follow. In any plan let u(j+1) be the first that
// is not on v's device; then start(v) >= max(key of u(j+1), S(j)), and if there is none,
// start(v) >= S(J). The least of these over all j holds in every plan. Leaving ancestors out only
// makes it smaller. Ops of v's own unit are on its device for certain and in every S; ops that may
// run on none of v's devices are apart for certain, and their key holds by itself.
//
// Beside it, ancestors share the devices: between a head h and v, v's device has until the least
// path p that follows, every other one must have stopped a crossing earlier, at the least r of
// path + crossing. With m devices in use the work w fits only if w <= (start(v) - h - p) + (m - 1)
// * (start(v) - h - r); so start(v) >= h + r + (w + p - r) / m for the best m, which is 1 or all.
//
// Ancestors are collected best key first. Keys fall along every path backwards, for the head of a
// producer plus its time is at most the head of its reader, and crossings only get fewer. Tails are
// heads of the reversed graph. Contention only delays, so all of it holds with and without.
// O(ops * window * log), the window being smaller for larger graphs.
HeadsAndTails heads_and_tails(const Problem& problem, const Relaxed& relaxed);

}  // namespace pardnn
