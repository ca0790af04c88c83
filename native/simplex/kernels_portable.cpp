#include "simplex/kernels.h"
#include "cpu/vector_portable.h"

#define RELAKIT_ISA portable
#include "simplex/kernels.inc.h"

namespace relakit::simplex {
const Kernels portable_kernels{"portable", portable::forward, portable::backward};
}
