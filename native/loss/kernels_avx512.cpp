#include "loss/kernels.h"
#include "cpu/vector_avx512.h"

#define RELAKIT_ISA avx512
#include "loss/kernels.inc.h"

namespace relakit::loss {
const Kernels avx512_kernels{"avx512", avx512::losses};
}
