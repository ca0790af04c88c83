#include "norm/kernels.h"
#include "cpu/vector_avx2.h"

#define RELAKIT_ISA avx2
#include "norm/kernels.inc.h"

namespace relakit::norm {
const Kernels avx2_kernels{"avx2", avx2::forward, avx2::backward};
}
