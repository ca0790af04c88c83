#include "simplex/kernels.h"
#include "cpu/vector_avx2.h"

#define RELAKIT_ISA avx2
#include "simplex/kernels.inc.h"

namespace relakit::simplex {
const Kernels avx2_kernels{"avx2", avx2::forward, avx2::backward};
}
