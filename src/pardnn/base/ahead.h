// Tasks done ahead: a few threads do them, their answers are taken one by one in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <thread>
#include <type_traits>
#include <vector>

namespace pardnn {

inline constexpr std::size_t kMostThreadsAhead = 2;

// Calls take(n, task(n)) for n = 0, 1 … count - 1 in this order, in the calling thread, while up to
// two threads do the tasks in about this order. Tasks must not depend on each other. What the first
// failing task throws comes out of here, after the tasks that are under way.
template <typename Task, typename Take>
void done_ahead(std::size_t count, const Task& task, const Take& take) {
  using Answer = std::invoke_result_t<const Task&, std::size_t>;
  std::vector<std::packaged_task<Answer()>> tasks;
  std::vector<std::future<Answer>> answers;
  for (std::size_t n = 0; n < count; ++n) {
    tasks.emplace_back([&task, n] { return task(n); });
    answers.push_back(tasks.back().get_future());
  }
  std::atomic<std::size_t> next = 0;
  // Left early, by a task that failed: what has not begun need not.
  struct NoMore {
    std::atomic<std::size_t>& next;
    std::size_t count;
    ~NoMore() { next = count; }
  };
  std::vector<std::future<void>> workers;  // their destructors wait
  const NoMore no_more{next, count};
  const auto work = [&] {
    for (std::size_t n = next++; n < count; n = next++) tasks[n]();
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t threads = std::min({count, cores, kMostThreadsAhead});
  for (std::size_t n = 0; n < threads; ++n) {
    workers.push_back(std::async(std::launch::async, work));
  }
  for (std::size_t n = 0; n < count; ++n) take(n, answers[n].get());
}

}  // namespace pardnn
