#pragma once

#include <string>

#include "attention/problem.h"
#include "attention/thresholds.h"

namespace relakit::attention {

// The kernels for one instruction set.
struct Kernels {
  const char* isa;
  void (*forward)(ForwardJob* jobs, std::int64_t count, int threads);
  void (*backward)(BackwardJob* jobs, std::int64_t count, int threads);
  ThresholdsByType* thresholds;  // not to be changed while kernels run
  bool has_screening;
  // Parts by themselves (speed.inc.h); both return how many floating-point operations they did.
  double (*multiply_and_add)(std::int64_t times);
  double (*score_products)(std::int64_t queries, std::int64_t keys, std::int64_t dim,
                           std::int64_t times);
};

// Those that the build has.
extern const Kernels portable_kernels, avx2_kernels, avx512_kernels, neon_kernels;
// AVX-512 for processors that multiply bfloat16 too.
extern const Kernels avx512_bf16_kernels;

// std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::attention
