#include "attention/kernels.h"

#include "cpu/dispatch.h"
#include "cpu/features.h"

namespace relakit::attention {

namespace {

bool adapt_to_processor() {
#if defined(RELAKIT_WITH_AVX512)
  if (is_amd()) *avx512_kernels.thresholds = {kAvx512ThresholdsOfAmd, kAvx512ThresholdsOfAmd};
#endif
#if defined(RELAKIT_WITH_AVX512_BF16)
  if (is_amd()) {
    *avx512_bf16_kernels.thresholds = {kAvx512ThresholdsOfAmd, kAvx512Bf16ThresholdsOfAmd};
  }
#endif
  return true;
}

}  // namespace

const Kernels& find_kernels(const std::string& isa) {
  [[maybe_unused]] static const bool is_adapted = adapt_to_processor();
  const Kernels& found = find_table<Kernels>(isa, {RELAKIT_KERNEL_TABLES});
#if defined(RELAKIT_WITH_AVX512_BF16)
  static const bool multiplies_bfloat16 = has_cpu_features({"avx512_bf16"});
  if (&found == &avx512_kernels && multiplies_bfloat16) return avx512_bf16_kernels;
#endif
  return found;
}

}  // namespace relakit::attention
