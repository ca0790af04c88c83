#include "loss/run.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "cpu/threads.h"
#include "loss/kernels.h"

namespace relakit::loss {

namespace {

// Few enough that all threads end at about the same time.
constexpr std::int64_t kBlockRows = 8;

}  // namespace

void run(const std::string& isa, int threads, const Problem& p, const Result& result) {
  for (std::int64_t row = 0; row < p.rows; row++) {
    if (p.targets[row] >= 0 && p.targets[row] < p.vocabulary) continue;
    throw std::invalid_argument("target " + std::to_string(p.targets[row]) +
                                " is not in a vocabulary of " + std::to_string(p.vocabulary));
  }
  struct Work {
    const Kernels& kernels;
    const Problem& p;
    const Result& result;
  } work{find_kernels(isa), p, result};
  run_parallel(
      (p.rows + kBlockRows - 1) / kBlockRows, threads,
      [](void* data, std::int64_t block) {
        const Work& w = *static_cast<const Work*>(data);
        thread_local std::vector<float> scratch;
        scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(w.p.vocabulary)));
        const std::int64_t begin = block * kBlockRows;
        w.kernels.losses(w.p, w.result, scratch.data(), begin,
                         std::min(begin + kBlockRows, w.p.rows));
      },
      &work);
}

}  // namespace relakit::loss
