#include "attention/kernels.h"
#include "attention/isa_avx2.h"

#define RELAKIT_ISA avx2
#include "attention/kernels.inc.h"

namespace relakit {
const Kernels avx2_kernels{"avx2", attention::avx2::forward, attention::avx2::backward};
}
