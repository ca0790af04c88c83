// AVX-512 for processors without VBMI2, such as Intel's Cascade Lake.

#include "attention/kernels.h"
#include "attention/isa_avx512.h"

#define RELAKIT_ISA avx512
#define RELAKIT_THRESHOLDS kAvx512Thresholds
#define RELAKIT_SCREEN_SUMS "attention/screen_sums_avx512.inc.h"
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels avx512_kernels = avx512::kernels_called("avx512");
}
