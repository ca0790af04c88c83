#include "attention/kernels.h"
#include "attention/isa_portable.h"

#define RELAKIT_ISA portable
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels portable_kernels{"portable", portable::forward, portable::backward};
}
