#include "attention/kernels.h"
#include "attention/isa_avx2.h"

#define RELAKIT_ISA avx2
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels avx2_kernels{"avx2", avx2::forward, avx2::backward};
}
