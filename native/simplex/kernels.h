#pragma once

#include <cstdint>
#include <string>

#include "simplex/problem.h"

namespace relakit::simplex {

// The kernels for one instruction set, for the rows from `begin` up to `end`.
struct Kernels {
  const char* isa;
  void (*forward)(const Problem&, const Forward&, std::int64_t begin, std::int64_t end);
  void (*backward)(const Problem&, const Backward&, std::int64_t begin, std::int64_t end);
};

// A build defines only the tables it has.
extern const Kernels portable_kernels, avx2_kernels, avx512_kernels, neon_kernels;

// Throws std::invalid_argument if the instruction set is not one of usable_isas().
const Kernels& find_kernels(const std::string& isa);

}  // namespace relakit::simplex
