// The attention kernels, written once over the vector type and compiled once per instruction set. The
// including file has defined RELAKIT_ISA and included isa_*.h of that name.
//
// Everything here is local to the file, and no template of the standard library is used: the linker
// would share one copy of it between files, compiled for an instruction set that a machine may lack.
//
// Arithmetic is on rows of float32, padded with zeros to a whole number of vectors. Other rows are
// first packed into scratch memory, which takes one pass over a tile; the work on it takes one pass per
// row. docs/kernels.md explains the whole.

#include "attention/packing.inc.h"
#include "attention/prefetch_queue.inc.h"
#include "attention/mask_and_dropout.inc.h"
#include "attention/products.inc.h"
#include "attention/lists.inc.h"
#if defined(RELAKIT_SCREENS)
#include "attention/screen_avx512.inc.h"
#else
#include "attention/screen_none.inc.h"
#endif
#include "attention/score_tile.inc.h"
#include "attention/scorer.inc.h"
#include "attention/forward.inc.h"
#include "attention/few_queries.inc.h"
#include "attention/backward.inc.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Waking a thread takes as long as a million multiplications, too long for a short call.
int useful_threads(const Problem& p, int threads) {
  const double work = static_cast<double>(p.batch * p.heads) * static_cast<double>(p.queries) *
                      static_cast<double>(p.keys) * static_cast<double>(p.dim + p.value_dim);
  const double most = work / 2e6;
  return most < 1.0 ? 1 : most < threads ? static_cast<int>(most) : threads;
}

template <class T>
void forward_all(const Problem& p, const ForwardResult& result, int threads) {
  if (p.queries == 0) return;
  if (is_for_few_queries(p)) {
    forward_few_queries<T>(p, result, threads);
  } else {
    forward_blocks<T>(p, result, threads);
  }
}

void forward(const Problem& p, const ForwardResult& result, int threads) {
  threads = useful_threads(p, threads);
  if (p.dtype == DType::bf16) {
    forward_all<std::uint16_t>(p, result, threads);
  } else {
    forward_all<float>(p, result, threads);
  }
}

void backward(const Problem& p, const BackwardResult& result, int threads) {
  threads = useful_threads(p, threads);
  if (p.dtype == DType::bf16) {
    backward_all<std::uint16_t>(p, result, threads);
  } else {
    backward_all<float>(p, result, threads);
  }
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
