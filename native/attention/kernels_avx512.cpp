#include "attention/kernels.h"
#include "attention/isa_avx512.h"

#define RELAKIT_ISA avx512
#define RELAKIT_SCREENS
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels avx512_kernels{"avx512", avx512::forward, avx512::backward};
}
