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
  ThresholdsByType* thresholds;  // must not change while kernels run
  bool has_screening;
  int width;  // floats in a vector
  // Isolated parts (speed.inc.h). Both return the number of floating-point operations they did.
  double (*multiply_and_add)(std::int64_t times);
  double (*score_products)(std::int64_t queries, std::int64_t keys, std::int64_t dim,
                           std::int64_t times);
};

// A build defines only the tables it has.
extern const Kernels portable_kernels, avx2_kernels, avx512_kernels, neon_kernels;
// Parts of AVX-512 that not all of its processors have: VBMI2, and products of bfloat16 besides.
extern const Kernels avx512_vbmi2_kernels, avx512_bf16_kernels;

// Throws std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::attention
