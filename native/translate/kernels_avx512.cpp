#include "cpu/lanes_bytes_avx512.h"

#define RELAKIT_ISA avx512
#include "translate/kernels.inc.h"

namespace relakit::decode {
const Kernels avx512_kernels{"avx512", avx512::linear, avx512::quantise, avx512::layer_norm, avx512::attend,
                             avx512::add_exponentials};
}
