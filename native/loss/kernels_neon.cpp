#include "loss/kernels.h"
#include "cpu/vector_neon.h"

#define RELAKIT_ISA neon
#include "loss/kernels.inc.h"

namespace relakit::loss {
const Kernels neon_kernels{"neon", neon::losses};
}
