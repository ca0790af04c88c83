#include "norm/kernels.h"
#include "cpu/vector_neon.h"

#define RELAKIT_ISA neon
#include "norm/kernels.inc.h"

namespace relakit::norm {
const Kernels neon_kernels{"neon", neon::forward, neon::backward};
}
