#include "norm/run.h"

#include <algorithm>
#include <vector>

#include "cpu/bfloat16.h"
#include "cpu/threads.h"
#include "norm/kernels.h"

namespace relakit::norm {

namespace {

// How many rows are summed up together: a fixed number, so that gradients do not depend on the
// number of threads.
constexpr std::int64_t kBlockRows = 64;
// Fewer elements than this are not worth waking a thread for.
constexpr std::int64_t kElementsPerThread = 32768;

// A parameter in float32: the parameter itself or a copy of it.
class Floats {
 public:
  Floats(const Parameter& parameter, std::int64_t size) {
    if (!parameter.is_bfloat16 || parameter.data == nullptr) {
      data_ = static_cast<const float*>(parameter.data);
      return;
    }
    const auto* halves = static_cast<const std::uint16_t*>(parameter.data);
    copy_.resize(static_cast<std::size_t>(size));
    std::transform(halves, halves + size, copy_.begin(), bfloat16_to_float);
    data_ = copy_.data();
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  const float* data() const { return data_; }

 private:
  std::vector<float> copy_;
  const float* data_;
};

std::int64_t block_count(const Problem& p) {
  return (row_count(p) + kBlockRows - 1) / kBlockRows;
}

int useful_threads(const Problem& p, int threads) {
  const std::int64_t useful = row_count(p) * features_of(p) / kElementsPerThread;
  return static_cast<int>(std::max<std::int64_t>(1, std::min<std::int64_t>(threads, useful)));
}

// Call run(first row, last row + 1, block) for each block of rows.
template <class Run>
void for_each_block(const Problem& p, int threads, const Run& run) {
  struct Work {
    const Run& run;
    std::int64_t rows;
  } work{run, row_count(p)};
  run_parallel(
      block_count(p), useful_threads(p, threads),
      [](void* data, std::int64_t block) {
        const Work& w = *static_cast<const Work*>(data);
        const std::int64_t begin = block * kBlockRows;
        w.run(begin, std::min(begin + kBlockRows, w.rows), block);
      },
      &work);
}

// Sum `count` vectors, `stride` floats apart, always in the same order.
void add_up(const float* sums, std::int64_t count, std::int64_t stride, std::int64_t size,
            const Parameter& total) {
  if (total.data == nullptr) return;
  std::vector<double> totals(static_cast<std::size_t>(size), 0.0);
  for (std::int64_t block = 0; block < count; block++) {
    for (std::int64_t j = 0; j < size; j++) {
      totals[static_cast<std::size_t>(j)] += static_cast<double>(sums[block * stride + j]);
    }
  }
  for (std::int64_t j = 0; j < size; j++) {
    const auto x = static_cast<float>(totals[static_cast<std::size_t>(j)]);
    if (total.is_bfloat16) {
      static_cast<std::uint16_t*>(total.data)[j] = bfloat16_from_float(x);
    } else {
      static_cast<float*>(total.data)[j] = x;
    }
  }
}

}  // namespace

void run_forward(const std::string& isa, int threads, const Call& call,
                 const ForwardResult& result) {
  const Kernels& kernels = find_kernels(isa);
  Problem p = call.problem;
  const Floats gain(call.gain, features_of(p)), gate(call.gate, features_of(p));
  p.gain = gain.data();
  p.gate = gate.data();
  for_each_block(p, threads, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    kernels.forward(p, result, begin, end);
  });
}

void run_backward(const std::string& isa, int threads, const Call& call,
                  const BackwardResult& result, const Parameter& grad_gain,
                  const Parameter& grad_gate) {
  const Kernels& kernels = find_kernels(isa);
  Problem p = call.problem;
  const std::int64_t features = features_of(p), blocks = block_count(p);
  const Floats gain(call.gain, features), gate(call.gate, features);
  p.gain = gain.data();
  p.gate = gate.data();
  // One block more than needed, so that there are sums, all 0, even if there are no rows.
  std::vector<float> sums(static_cast<std::size_t>(2 * features * (blocks + 1)), 0.0f);
  for_each_block(p, threads, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    thread_local std::vector<float> scratch;
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(features)));
    BlockSums block_sums;
    block_sums.gain = sums.data() + 2 * features * block;
    block_sums.gate = p.gate == nullptr ? nullptr : block_sums.gain + features;
    kernels.backward(p, result, block_sums, scratch.data(), begin, end);
  });
  add_up(sums.data(), blocks, 2 * features, features, grad_gain);
  add_up(sums.data() + features, blocks, 2 * features, features, grad_gate);
}

}  // namespace relakit::norm
