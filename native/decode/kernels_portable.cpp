#include "lanes/bytes_portable.h"

#define RELAKIT_ISA portable
#include "decode/kernels.inc.h"

namespace relakit::decode {
const Kernels portable_kernels{"portable", portable::linear, portable::quantise, portable::layer_norm, portable::attend,
                             portable::add_exponentials};
}
