#include "simplex/kernels.h"
#include "cpu/vector_avx512.h"

#define RELAKIT_ISA avx512
#include "simplex/kernels.inc.h"

namespace relakit::simplex {
const Kernels avx512_kernels{"avx512", avx512::forward, avx512::backward};
}
