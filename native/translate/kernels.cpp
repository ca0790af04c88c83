#include "translate/kernels.h"

#include "cpu/dispatch.h"
#include "cpu/features.h"

namespace relakit::translate {

const Kernels& find_kernels(const std::string& isa) {
  const Kernels& found = find_table<Kernels>(isa, {RELAKIT_KERNEL_TABLES});
#if defined(RELAKIT_WITH_NEON)
  static const bool multiplies_bytes = has_cpu_features({"asimddp"});
  if (&found == &neon_kernels && multiplies_bytes) return neon_dotprod_kernels;
#endif
#if defined(RELAKIT_WITH_AVX2_VNNI) && !defined(RELAKIT_EVEX)
  static const bool multiplies_bytes = has_cpu_features({"avx_vnni"});
  if (&found == &avx2_kernels && multiplies_bytes) return avx2_vnni_kernels;
#endif
  return found;
}

}  // namespace relakit::translate
