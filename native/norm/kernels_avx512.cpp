#include "norm/kernels.h"
#include "cpu/vector_avx512.h"

#define RELAKIT_ISA avx512
#include "norm/kernels.inc.h"

namespace relakit::norm {
const Kernels avx512_kernels{"avx512", avx512::forward, avx512::backward};
}
