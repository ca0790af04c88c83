#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/threads.h"

namespace relakit::translate {

// Work for which waking a thread is worth while, in multiplications or the like.
constexpr std::int64_t kWorkPerThread = 1 << 17;

// run(0) ... run(count - 1) on up to `threads` threads, each of which is worth `share` of them.
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

inline std::size_t as_index(std::int64_t i) { return static_cast<std::size_t>(i); }

// At least that many entries; those that were there stay.
template <class T>
void make_room(std::vector<T>& memory, std::int64_t size) {
  if (memory.size() < as_index(size)) memory.resize(as_index(size));
}

}  // namespace relakit::translate
