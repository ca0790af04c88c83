#pragma once

#include <string>

#include "attention/problem.h"

namespace relakit::attention {

// The kernels for one instruction set.
struct Kernels {
  const char* isa;
  void (*forward)(ForwardJob* jobs, std::int64_t count, int threads);
  void (*backward)(BackwardJob* jobs, std::int64_t count, int threads);
};

extern const Kernels portable_kernels, avx2_kernels, avx512_kernels;  // those that the build has

// std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::attention
