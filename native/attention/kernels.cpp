#include "attention/kernels.h"

#include "cpu/dispatch.h"
#include "cpu/features.h"

namespace relakit::attention {

namespace {

bool adapt_to_processor() {
  if (!is_amd()) return true;
#if defined(RELAKIT_WITH_AVX2)
  *avx2_kernels.thresholds = {kAvx2ThresholdsOfAmd, kAvx2ThresholdsOfAmd};
#endif
#if defined(RELAKIT_WITH_AVX512)
  for (const Kernels* kernels : {&avx512_kernels, &avx512_vbmi2_kernels}) {
    *kernels->thresholds = {kAvx512ThresholdsOfAmd, kAvx512ThresholdsOfAmd};
  }
#endif
#if defined(RELAKIT_WITH_AVX512_BF16)
  *avx512_bf16_kernels.thresholds = {kAvx512ThresholdsOfAmd, kAvx512Bf16ThresholdsOfAmd};
#endif
  return true;
}

#if defined(RELAKIT_WITH_AVX512)
const Kernels& best_of_avx512() {
  if (!has_cpu_features({"avx512_vbmi2"})) return avx512_kernels;
#if defined(RELAKIT_WITH_AVX512_BF16)
  if (has_cpu_features({"avx512_bf16"})) return avx512_bf16_kernels;
#endif
  return avx512_vbmi2_kernels;
}
#endif

}  // namespace

const Kernels& find_kernels(const std::string& isa) {
  [[maybe_unused]] static const bool is_adapted = adapt_to_processor();
  const Kernels& found = find_table<Kernels>(isa, {RELAKIT_KERNEL_TABLES});
#if defined(RELAKIT_WITH_AVX512)
  static const Kernels& avx512 = best_of_avx512();
  if (&found == &avx512_kernels) return avx512;
#endif
  return found;
}

}  // namespace relakit::attention
