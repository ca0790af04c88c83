#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/threads.h"

namespace relakit::translate {

// How much work is worth waking a thread for, in multiplications or the like.
constexpr std::int64_t kWorkPerThread = 1 << 17;

// Calls run(0) ... run(count - 1) on up to `threads` threads, with at least `share` calls for each.
template <class Run>
void parallel_for(std::int64_t count, int threads, std::int64_t share, const Run& run) {
  const std::int64_t useful = count / std::max<std::int64_t>(1, share);
  if (threads == 1 || useful < 2) {
    for (std::int64_t i = 0; i < count; i++) run(i);
    return;
  }
  struct Work {
    const Run& run;
  } work{run};
  run_parallel(
      count, static_cast<int>(std::min<std::int64_t>(threads, useful)),
      [](void* data, std::int64_t i) { static_cast<const Work*>(data)->run(i); }, &work);
}

}  // namespace relakit::translate
