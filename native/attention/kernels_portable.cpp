#include "attention/kernels.h"
#include "attention/isa_portable.h"

#define RELAKIT_ISA portable
#include "attention/kernels.inc.h"

namespace relakit {
const Kernels portable_kernels{"portable", attention::portable::forward, attention::portable::backward};
}
