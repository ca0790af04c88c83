// AVX-512 again, for processors that also compress bytes (VBMI2): Intel since Ice Lake, AMD since Zen 4.

#define RELAKIT_VBMI2
#include "attention/kernels.h"
#include "attention/isa_avx512.h"

namespace relakit::attention::avx512_vbmi2 {
namespace {
using namespace relakit::attention::avx512;
}
}  // namespace relakit::attention::avx512_vbmi2

#define RELAKIT_ISA avx512_vbmi2
#define RELAKIT_THRESHOLDS kAvx512Thresholds
#define RELAKIT_SCREEN_SUMS "attention/screen_sums_avx512.inc.h"
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels avx512_vbmi2_kernels = avx512_vbmi2::kernels_called("avx512");
}
