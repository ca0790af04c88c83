// AVX-512 with VBMI2 again, for processors that also multiply bfloat16 (AVX512-BF16).

#define RELAKIT_VBMI2
#include "attention/kernels.h"
#include "attention/isa_avx512.h"
#include "cpu/pair_sums_avx512.h"

namespace relakit::attention::avx512_bf16 {
namespace {
using namespace relakit::attention::avx512;
}
}  // namespace relakit::attention::avx512_bf16

#define RELAKIT_ISA avx512_bf16
#define RELAKIT_THRESHOLDS kAvx512Thresholds
#define RELAKIT_SCREEN_SUMS "attention/screen_sums_avx512.inc.h"
#define RELAKIT_PAIR_SUMS
#include "attention/kernels.inc.h"

namespace relakit::attention {
const Kernels avx512_bf16_kernels = avx512_bf16::kernels_called("avx512");
}
