#include "attention/kernels.h"
#include "attention/isa_neon.h"

#define RELAKIT_ISA neon
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels neon_kernels{"neon", neon::forward, neon::backward};
}
