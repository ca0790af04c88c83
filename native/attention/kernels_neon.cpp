#include "attention/kernels.h"
#include "attention/isa_neon.h"

#define RELAKIT_ISA neon
#define RELAKIT_THRESHOLDS kOtherThresholds
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels neon_kernels = neon::kernels_called("neon");
}
