#pragma once

#include <cstdint>
#include <string>

#include "loss/problem.h"

namespace relakit::loss {

// The kernel for one instruction set, for the rows from `begin` up to `end`. `scratch` has room for
// a row of floats.
struct Kernels {
  const char* isa;
  void (*losses)(const Problem&, const Result&, float* scratch, std::int64_t begin,
                 std::int64_t end);
};

// A build defines only the tables it has.
extern const Kernels portable_kernels, avx2_kernels, avx512_kernels, neon_kernels;

// Throws std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::loss
