#include "attention/kernels.h"
#include "attention/isa_portable.h"

#define RELAKIT_ISA portable
#define RELAKIT_THRESHOLDS kOtherThresholds
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels portable_kernels = portable::kernels_called("portable");
}
