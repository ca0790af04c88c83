#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/bits.h"
#include "cpu/set_bits.h"
#include "cpu/vector_avx2.h"

namespace relakit::attention::avx2 {
namespace {

using namespace relakit::avx2;  // the vector type, and functions of several vectors

// isa_portable.h explains the names.
struct TileShape {
  static constexpr int rows = 6, columns = 2;  // 12 sums in 16 registers
  static constexpr int sum_rows = 6, sum_columns = 2;
  static constexpr int steps_per_line = 4;
};

inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 2; i++) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes) + i);
    const __m256i zero = _mm256_cmpeq_epi8(x, _mm256_setzero_si256());
    bits |= static_cast<std::uint64_t>(~static_cast<std::uint32_t>(_mm256_movemask_epi8(zero)))
            << (32 * i);
  }
  return bits;
}

// Handles eight bits at a time and writes 8 bytes each time.
inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  const std::uint64_t bases = 0x0101010101010101ull * static_cast<std::uint64_t>(base);
  for (int i = 0; i < 8; i++) {
    const std::uint64_t part = bits >> (8 * i) & 255;
    const std::uint64_t found =
        set_bits.of[part] + bases + 0x0808080808080808ull * static_cast<std::uint64_t>(i);
    std::memcpy(list + length, &found, sizeof found);
    length += count_bits(part);
  }
  return length;
}

inline int append_entries(std::uint64_t bits, int base, const float* numbers, std::uint8_t* list,
                          float* listed, int length) {
  const std::uint64_t bases = 0x0101010101010101ull * static_cast<std::uint64_t>(base);
  for (int i = 0; i < 8; i++) {
    const std::uint64_t part = bits >> (8 * i) & 255, order = set_bits.of[part];
    const std::uint64_t found = order + bases + 0x0808080808080808ull * static_cast<std::uint64_t>(i);
    std::memcpy(list + length, &found, sizeof found);
    const __m256i places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(order)));
    const __m256 eight = _mm256_loadu_ps(numbers + 8 * i);
    _mm256_storeu_ps(listed + length, _mm256_permutevar8x32_ps(eight, places));
    length += count_bits(part);
  }
  return length;
}

}  // namespace
}  // namespace relakit::attention::avx2
