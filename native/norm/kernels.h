#pragma once

#include <cstdint>
#include <string>

#include "norm/problem.h"

namespace relakit::norm {

// The kernels for one instruction set, for the rows from `begin` up to `end`.
struct Kernels {
  const char* isa;
  void (*forward)(const Problem&, const ForwardResult&, std::int64_t begin, std::int64_t end);
  // Adds to the sums. `scratch` has room for one row of features.
  void (*backward)(const Problem&, const BackwardResult&, const BlockSums&, float* scratch,
                   std::int64_t begin, std::int64_t end);
};

// A build defines only the tables it has.
extern const Kernels portable_kernels, avx2_kernels, avx512_kernels, neon_kernels;

// Throws std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::norm
