#include "attention/kernels.h"
#include "attention/isa_portable.h"

#define RELAKIT_ISA portable
#define RELAKIT_THRESHOLDS kOtherThresholds
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels portable_kernels{"portable",
                              portable::forward,
                              portable::backward,
                              &portable::thresholds,
                              portable::Screen::kIsAvailable,
                              portable::multiply_and_add,
                              portable::score_products};
}
