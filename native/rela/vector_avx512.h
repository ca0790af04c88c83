#pragma once

#include <immintrin.h>

#include <cstdint>

#include "bits.h"
#include "transpose_avx.h"

namespace relakit::avx512 {

struct Vector {
  static constexpr int width = 16;
  static constexpr int rows = 6, columns = 4;  // score tile: 24 accumulators of 32 registers
  static constexpr int sum_rows = 6;             // dense sums: 6 rows of 4 vectors
  __m512 v;

  static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vector load(const std::uint16_t* p) {  // bfloat16: the upper half of a float32
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  static Vector all(float x) { return {_mm512_set1_ps(x)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  Vector plus_product(const Vector& a, const Vector& b) const {
    return {_mm512_fmadd_ps(a.v, b.v, v)};
  }
  Vector plus(const Vector& b) const { return {_mm512_add_ps(v, b.v)}; }
  Vector times(const Vector& b) const { return {_mm512_mul_ps(v, b.v)}; }
  Vector at_least_zero() const { return {_mm512_max_ps(v, _mm512_setzero_ps())}; }
  std::uint32_t not_below_or_zero() const {
    return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ);
  }
  std::uint32_t differs_from(const Vector& b) const {
    return _mm512_cmp_ps_mask(v, b.v, _CMP_NEQ_UQ);
  }
  Vector where(std::uint32_t bits) const {
    return {_mm512_maskz_mov_ps(static_cast<__mmask16>(bits), v)};
  }
  void store_chosen(std::uint32_t bits, float* p) const {
    // To a register and then to memory: the form with a memory operand is slow on some processors.
    _mm512_storeu_ps(p, _mm512_maskz_compress_ps(static_cast<__mmask16>(bits), v));
  }
  float sum() const {
    const __m256 high = _mm512_extractf32x8_ps(v, 1);
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), high);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
  }
};

static inline __m512 add_pairs(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

static inline __m128 sums_of(const Vector (&x)[4]) {
  const __m512d ab = _mm512_castps_pd(add_pairs(x[0].v, x[1].v));
  const __m512d cd = _mm512_castps_pd(add_pairs(x[2].v, x[3].v));
  const __m512 quads = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                                     _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(quads), _mm512_extractf32x8_ps(quads, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

// out[i] = sum of x[i], for four vectors.
static inline void store_sums(const Vector (&x)[4], float* out) { _mm_storeu_ps(out, sums_of(x)); }

// out[i] = the sum of x[i] plus shift, at least 0.
static inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  const __m128 shifted = _mm_add_ps(sums_of(x), _mm_set1_ps(shift));
  _mm_storeu_ps(out, _mm_max_ps(shifted, _mm_setzero_ps()));
}

// One bit per byte of 64: is it not 0?
static inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  const __m512i x = _mm512_loadu_si512(bytes);
  return _mm512_test_epi8_mask(x, x);
}

// All 64 positions in one instruction (VBMI2). Writes 64 bytes: the list needs that much room.
static inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  alignas(64) static constexpr std::uint8_t counting[64] = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
      22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
      44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  const __m512i positions = _mm512_add_epi8(_mm512_load_si512(counting),
                                            _mm512_set1_epi8(static_cast<char>(base)));
  _mm512_storeu_si512(list + length, _mm512_maskz_compress_epi8(bits, positions));
  return length + count_bits(bits);
}

}  // namespace relakit::avx512
