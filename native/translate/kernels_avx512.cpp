#include "translate/kernels.h"
#include "cpu/byte_sums_avx512.h"

#define RELAKIT_ISA avx512
#include "translate/kernels.inc.h"

namespace relakit::translate {
const Kernels avx512_kernels{"avx512", avx512::layout, avx512::linear, avx512::quantise,
                             avx512::layer_norm, avx512::attend, avx512::add_exponentials};
}
