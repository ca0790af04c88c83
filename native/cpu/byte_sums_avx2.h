#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/vector_avx2.h"

namespace relakit::avx2 {
namespace {

// byte_sums_portable.h explains the members. The instruction that multiplies bytes saturates
// its sums, so bytes are first widened to 16 bits, those at even and at odd places separately.
struct ByteSums {
  __m256i v;

  struct Weights {
    __m256i even, odd;
    static Weights load(const std::int8_t* p) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
      return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
    }
  };
  static ByteSums zero() { return {_mm256_setzero_si256()}; }
  void add(const std::uint8_t* four, const Weights& weights) {
    std::uint32_t x;
    std::memcpy(&x, four, sizeof x);
    const __m256i even = _mm256_set1_epi32(static_cast<int>(x & 0x00FF00FFu));
    const __m256i odd = _mm256_set1_epi32(static_cast<int>((x >> 8) & 0x00FF00FFu));
    v = _mm256_add_epi32(v, _mm256_add_epi32(_mm256_madd_epi16(even, weights.even),
                                             _mm256_madd_epi16(odd, weights.odd)));
  }
  Vector minus(const std::int32_t* offsets) const {
    const __m256i o = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offsets));
    return {_mm256_cvtepi32_ps(_mm256_sub_epi32(v, o))};
  }
};

}  // namespace
}  // namespace relakit::avx2
