#define RELAKIT_ISA avx2_vnni
#define RELAKIT_VNNI
#include "translate/kernels.h"
#include "cpu/byte_sums_avx2.h"
#include "translate/kernels.inc.h"

namespace relakit::translate {
const Kernels avx2_vnni_kernels{"avx2", avx2_vnni::layout, avx2_vnni::linear, avx2_vnni::quantise,
                                avx2_vnni::layer_norm, avx2_vnni::attend,
                                avx2_vnni::add_exponentials};
}
