#include "attention/kernels.h"

#include "cpu/dispatch.h"
#include "cpu/features.h"

namespace relakit::attention {

namespace {

bool adapt_to_processor() {
#if defined(RELAKIT_WITH_AVX512)
  if (is_amd()) *avx512_kernels.thresholds = kAvx512ThresholdsOfAmd;
#endif
  return true;
}

}  // namespace

const Kernels& find_kernels(const std::string& isa) {
  [[maybe_unused]] static const bool is_adapted = adapt_to_processor();
  return find_table<Kernels>(isa, {RELAKIT_KERNEL_TABLES});
}

}  // namespace relakit::attention
