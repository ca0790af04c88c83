#include "loss/kernels.h"
#include "cpu/vector_portable.h"

#define RELAKIT_ISA portable
#include "loss/kernels.inc.h"

namespace relakit::loss {
const Kernels portable_kernels{"portable", portable::losses};
}
