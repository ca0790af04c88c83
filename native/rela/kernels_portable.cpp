#include "rela/vector_portable.h"

#define RELAKIT_ISA portable
#include "rela/kernels.inc.h"

namespace relakit {
const Kernels portable_kernels{"portable", portable::forward, portable::backward};
}
