// The attention kernels, written once over the vector type and compiled once per instruction set.
// The including file must define RELAKIT_ISA and include the isa_*.h of that name. If there is a
// PairSums (cpu/pair_sums_*.h), it must define RELAKIT_PAIR_SUMS too.
//
// Everything here is local to the file, and no template of the standard library is used: the linker
// would share one copy of it between files, compiled for an instruction set that a machine may
// lack.
//
// Arithmetic works on rows of float32, padded with zeros to a whole number of vectors. Other rows
// are first packed into scratch memory. That takes one pass over a tile, whereas the work on the
// tile takes one pass per row. docs/kernels.md explains the design.

#include "attention/kernels.h"
#include "attention/thresholds.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {
ThresholdsByType thresholds{RELAKIT_THRESHOLDS, RELAKIT_THRESHOLDS};

template <class T>
const Thresholds& thresholds_for() {
  return sizeof(T) == sizeof(float) ? thresholds.f32 : thresholds.bf16;
}
}
}  // namespace relakit::attention::RELAKIT_ISA

#include "attention/packing.inc.h"
#include "attention/prefetch_queue.inc.h"
#include "attention/mask_and_dropout.inc.h"
#include "attention/products.inc.h"
#include "attention/pair_products.inc.h"
#include "attention/lists.inc.h"
#if defined(RELAKIT_SCREEN_SUMS)
#include RELAKIT_SCREEN_SUMS
#include "attention/screen.inc.h"
#else
#include "attention/screen_none.inc.h"
#endif
#include "attention/score_tile.inc.h"
#include "attention/scorer.inc.h"
#include "attention/tasks.inc.h"
#include "attention/forward.inc.h"
#include "attention/few_queries.inc.h"
#include "attention/gradient_sums.inc.h"
#include "attention/backward.inc.h"
#include "attention/backward_plan.inc.h"
#include "attention/speed.inc.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Waking a thread takes as long as a million multiplications, too long for a short call.
template <class Result>
int useful_threads(const Job<Result>* jobs, std::int64_t count, int threads) {
  double work = 0.0;
  for (std::int64_t i = 0; i < count; i++) {
    const Problem& p = jobs[i].problem;
    work += static_cast<double>(p.batch * p.heads) * static_cast<double>(p.queries) *
            static_cast<double>(p.keys) * static_cast<double>(p.dim + p.value_dim);
  }
  const double most = work / 2e6;
  return most < 1.0 ? 1 : most < threads ? static_cast<int>(most) : threads;
}

template <class T>
void forward_all(ForwardJob* jobs, std::int64_t count, int threads) {
  forward_blocks<T>(jobs, count, threads);
  forward_few_queries<T>(jobs, count, threads);
}

// All jobs have the same dtype.
void forward(ForwardJob* jobs, std::int64_t count, int threads) {
  if (count == 0) return;
  threads = useful_threads(jobs, count, threads);
  if (jobs[0].problem.dtype == DType::bf16) {
    forward_all<std::uint16_t>(jobs, count, threads);
  } else {
    forward_all<float>(jobs, count, threads);
  }
}

void backward(BackwardJob* jobs, std::int64_t count, int threads) {
  if (count == 0) return;
  threads = useful_threads(jobs, count, threads);
  if (jobs[0].problem.dtype == DType::bf16) {
    backward_all<std::uint16_t>(jobs, count, threads);
  } else {
    backward_all<float>(jobs, count, threads);
  }
}

// The table of these kernels, under the name that users know. It is built at compile time because
// other files use it when they are initialised.
constexpr Kernels kernels_called(const char* isa) {
  return {isa,    forward,          backward,      &thresholds, Screen::kIsAvailable,
          kWidth, multiply_and_add, score_products};
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
