#include "norm/kernels.h"
#include "cpu/vector_portable.h"

#define RELAKIT_ISA portable
#include "norm/kernels.inc.h"

namespace relakit::norm {
const Kernels portable_kernels{"portable", portable::forward, portable::backward};
}
