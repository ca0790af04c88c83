#define RELAKIT_ISA neon_dotprod
#define RELAKIT_DOTPROD
#include "translate/kernels.h"
#include "cpu/byte_sums_neon.h"
#include "translate/kernels.inc.h"

namespace relakit::translate {
const Kernels neon_dotprod_kernels{"neon", neon_dotprod::layout, neon_dotprod::linear, neon_dotprod::quantise,
                                   neon_dotprod::layer_norm, neon_dotprod::attend,
                                   neon_dotprod::add_exponentials};
}
