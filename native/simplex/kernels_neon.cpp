#include "simplex/kernels.h"
#include "cpu/vector_neon.h"

#define RELAKIT_ISA neon
#include "simplex/kernels.inc.h"

namespace relakit::simplex {
const Kernels neon_kernels{"neon", neon::forward, neon::backward};
}
