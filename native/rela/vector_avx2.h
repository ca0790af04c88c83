#pragma once

#include <immintrin.h>

#include <cstdint>

#include "bits.h"
#include "transpose_avx.h"

namespace relakit::avx2 {

struct Vector {
  static constexpr int width = 8;
  static constexpr int rows = 4, columns = 3;  // score tile: 12 accumulators of 16 registers
  static constexpr int sum_rows = 2;             // dense sums: 2 rows of 4 vectors
  __m256 v;

  static Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Vector all(float x) { return {_mm256_set1_ps(x)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  Vector plus_product(const Vector& a, const Vector& b) const {
    return {_mm256_fmadd_ps(a.v, b.v, v)};
  }
  Vector plus(const Vector& b) const { return {_mm256_add_ps(v, b.v)}; }
  std::uint32_t not_below_or_zero() const {
    const __m256 m = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLE_UQ);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(m));
  }
  Vector where(std::uint32_t bits) const {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i chosen = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
    return {_mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, each)))};
  }
  float sum() const {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
  }
};

static inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  return append_positions_one_by_one(bits, base, list, length);
}

}  // namespace relakit::avx2
