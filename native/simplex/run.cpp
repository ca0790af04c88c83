#include "simplex/run.h"

#include <algorithm>

#include "cpu/threads.h"
#include "simplex/kernels.h"

namespace relakit::simplex {

namespace {

// Fewer elements than this are not worth waking a thread for.
constexpr std::int64_t kElementsPerThread = 8192;

// Call run(first row, last row + 1) for one block of rows per thread.
template <class Run>
void for_each_block(const Problem& p, int threads, const Run& run) {
  const std::int64_t useful = std::min(p.rows, p.rows * p.keys / kElementsPerThread);
  const std::int64_t blocks = std::max<std::int64_t>(1, std::min<std::int64_t>(threads, useful));
  struct Work {
    const Run& run;
    std::int64_t rows, blocks;
  } work{run, p.rows, blocks};
  run_parallel(
      blocks, static_cast<int>(blocks),
      [](void* data, std::int64_t block) {
        const Work& w = *static_cast<const Work*>(data);
        w.run(w.rows * block / w.blocks, w.rows * (block + 1) / w.blocks);
      },
      &work);
}

}  // namespace

void run_forward(const std::string& isa, int threads, const Problem& p,
                 const Forward& f) {
  const Kernels& kernels = find_kernels(isa);
  for_each_block(p, threads, [&](std::int64_t begin, std::int64_t end) {
    kernels.forward(p, f, begin, end);
  });
}

void run_backward(const std::string& isa, int threads, const Problem& p,
                  const Backward& b) {
  const Kernels& kernels = find_kernels(isa);
  for_each_block(p, threads, [&](std::int64_t begin, std::int64_t end) {
    kernels.backward(p, b, begin, end);
  });
}

}  // namespace relakit::simplex
