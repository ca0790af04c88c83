#include "translate/kernels.h"
#include "cpu/byte_sums_portable.h"

#define RELAKIT_ISA portable
#include "translate/kernels.inc.h"

namespace relakit::translate {
const Kernels portable_kernels{"portable", portable::layout, portable::linear, portable::quantise, portable::layer_norm,
                             portable::attend, portable::add_exponentials};
}
