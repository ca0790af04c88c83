#include "loss/kernels.h"
#include "cpu/vector_avx2.h"

#define RELAKIT_ISA avx2
#include "loss/kernels.inc.h"

namespace relakit::loss {
const Kernels avx2_kernels{"avx2", avx2::losses};
}
