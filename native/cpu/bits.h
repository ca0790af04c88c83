#pragma once

#include <cstdint>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace relakit {

// "static": each file has its own copy, compiled with the flags of that file.

static inline int count_bits(std::uint64_t bits) {
#if defined(_MSC_VER)
  return static_cast<int>(__popcnt64(bits));
#else
  return __builtin_popcountll(bits);
#endif
}

static inline int lowest_bit(std::uint64_t bits) {
#if defined(_MSC_VER)
  unsigned long position;
  _BitScanForward64(&position, bits);
  return static_cast<int>(position);
#else
  return __builtin_ctzll(bits);
#endif
}

// Transpose a 64 x 64 matrix of bits in place: bit j of word i becomes bit i of word j. Blocks off
// the diagonal are swapped, 32 x 32 bits first and single bits last.
static inline void transpose_bits(std::uint64_t words[64]) {
  std::uint64_t mask = 0x00000000FFFFFFFFull;
  for (int size = 32; size != 0; size >>= 1, mask ^= mask << size) {
    for (int i = 0; i < 64; i = ((i | size) + 1) & ~size) {
      const std::uint64_t swap = ((words[i] >> size) ^ words[i | size]) & mask;
      words[i] ^= swap << size;
      words[i | size] ^= swap;
    }
  }
}

}  // namespace relakit
