// The kernels, written once over a vector type and compiled once per instruction set. The including
// file has defined Vector and append_positions in the namespace RELAKIT_ISA.
//
// Everything here is local to the file, and no template of the standard library is used: the linker
// would share one copy of it between files, compiled for an instruction set that a machine may lack.
//
// All arithmetic is on packed tiles in scratch memory: float32, rows padded with zeros to a whole
// number of vectors. Packing converts bfloat16, undoes strides, and costs one pass for each tile, while
// the work on a tile is one pass for each of its rows.

#include "rela/packing.inc.h"
#include "rela/primitives.inc.h"
#include "rela/head.inc.h"
#if defined(RELAKIT_SCREENS)
#include "rela/screen_avx512.inc.h"
#else
#include "rela/screen_none.inc.h"
#endif
#include "rela/tile.inc.h"
#include "rela/forward.inc.h"
#include "rela/decode.inc.h"
#include "rela/backward.inc.h"

namespace relakit::RELAKIT_ISA {
namespace {

template <class T>
void forward_all(const Problem& p, const ForwardResult& result, int threads) {
  if (p.queries == 0) return;
  if (can_decode(p)) {
    decode_all<T>(p, result, threads);
  } else {
    forward_blocks<T>(p, result, threads);
  }
}

void forward(const Problem& p, const ForwardResult& result, int threads) {
  if (p.dtype == DType::bf16) {
    forward_all<std::uint16_t>(p, result, threads);
  } else {
    forward_all<float>(p, result, threads);
  }
}

void backward(const Problem& p, const BackwardResult& result, int threads) {
  if (p.dtype == DType::bf16) {
    backward_all<std::uint16_t>(p, result, threads);
  } else {
    backward_all<float>(p, result, threads);
  }
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
