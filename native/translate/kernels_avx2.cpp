#include "cpu/lanes_bytes_avx2.h"

#define RELAKIT_ISA avx2
#include "translate/kernels.inc.h"

namespace relakit::decode {
const Kernels avx2_kernels{"avx2", avx2::linear, avx2::quantise, avx2::layer_norm, avx2::attend,
                             avx2::add_exponentials};
}
