#define RELAKIT_ISA neon
#include "translate/kernels.h"
#include "cpu/byte_sums_neon.h"
#include "translate/kernels.inc.h"

namespace relakit::translate {
const Kernels neon_kernels{"neon", neon::layout, neon::linear, neon::quantise, neon::layer_norm,
                           neon::attend, neon::add_exponentials};
}
