#include "attention/kernels.h"
#include "attention/isa_avx2.h"

#define RELAKIT_ISA avx2
#define RELAKIT_THRESHOLDS kAvx2Thresholds
#define RELAKIT_SCREEN_SUMS "attention/screen_sums_avx2.inc.h"
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels avx2_kernels = avx2::kernels_called("avx2");
}
