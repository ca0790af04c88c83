#define RELAKIT_ISA avx2
#include "translate/kernels.h"
#include "cpu/byte_sums_avx2.h"
#include "translate/kernels.inc.h"

namespace relakit::translate {
const Kernels avx2_kernels{"avx2", avx2::layout, avx2::linear, avx2::quantise, avx2::layer_norm,
                           avx2::attend, avx2::add_exponentials};
}
