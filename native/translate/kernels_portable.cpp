#include "cpu/lanes_bytes_portable.h"

#define RELAKIT_ISA portable
#include "translate/kernels.inc.h"

namespace relakit::decode {
const Kernels portable_kernels{"portable", portable::linear, portable::quantise, portable::layer_norm, portable::attend,
                             portable::add_exponentials};
}
