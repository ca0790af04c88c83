// The portable kernels with products of bfloat16 two at a time, as those of AVX512-BF16 have them, for checks
// on machines without that.

#include "attention/kernels.h"
#include "attention/isa_portable.h"
#include "cpu/pair_sums_portable.h"

namespace relakit::attention::portable_pairs {
namespace {
using namespace relakit::attention::portable;
}
}  // namespace relakit::attention::portable_pairs

#define RELAKIT_ISA portable_pairs
#define RELAKIT_THRESHOLDS kOtherThresholds
#define RELAKIT_PAIR_SUMS
#include "attention/kernels.inc.h"

namespace relakit::attention {
extern const Kernels portable_pairs_kernels;
const Kernels portable_pairs_kernels = portable_pairs::kernels_called("portable");
}
