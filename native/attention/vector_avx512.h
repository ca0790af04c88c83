#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

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
  Vector rectified() const {  // NaN stays NaN: of two operands, the second is returned then
    return {_mm512_max_ps(_mm512_setzero_ps(), v)};
  }
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

// The four floats at p, each in all entries of a vector. One load, as loads are what is scarce.
static inline void load_each(const float* p, Vector (&out)[4]) {
  const __m512 four = _mm512_broadcast_f32x4(_mm_loadu_ps(p));
  out[0].v = _mm512_permute_ps(four, 0x00);
  out[1].v = _mm512_permute_ps(four, 0x55);
  out[2].v = _mm512_permute_ps(four, 0xAA);
  out[3].v = _mm512_permute_ps(four, 0xFF);
}

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
  _mm_storeu_ps(out, _mm_max_ps(_mm_setzero_ps(), shifted));
}

// The two floats at p, each in all entries of a vector: one load again.
static inline void load_pair(const float* p, Vector& first, Vector& second) {
  double both;
  std::memcpy(&both, p, sizeof both);
  const __m512 pairs = _mm512_castpd_ps(_mm512_set1_pd(both));
  first.v = _mm512_moveldup_ps(pairs);
  second.v = _mm512_movehdup_ps(pairs);
}

// out = a[0], b[0], a[1], b[1] and so on.
static inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(out, _mm512_permutex2var_ps(a.v, low, b.v));
  _mm512_storeu_ps(out + 16, _mm512_permutex2var_ps(a.v, high, b.v));
}

// Transpose a 64 x 64 matrix of bits in place: bit j of word i becomes bit i of word j.
static inline void transpose_bits(std::uint64_t (&words)[64]) {
  // Within each eight words: byte b of all of them side by side.
  const __m512i in_pairs = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  alignas(64) static constexpr std::uint16_t by_byte[32] = {
      0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
      4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
  __m512i eights[8];
  for (int a = 0; a < 8; a++) {
    const __m512i rows = _mm512_loadu_si512(words + 8 * a);
    eights[a] = _mm512_permutexvar_epi16(_mm512_load_si512(by_byte),
                                         _mm512_shuffle_epi8(rows, in_pairs));
  }
  // Byte b of all 64 words side by side; then one bit after the other.
  const __m512i every_eighth = _mm512_setr_epi64(0, 8, 16, 24, 32, 40, 48, 56);
  alignas(64) std::uint64_t bytes[64];
  for (int a = 0; a < 8; a++) _mm512_store_si512(bytes + 8 * a, eights[a]);
  for (int b = 0; b < 8; b++) {
    const __m512i column = _mm512_i64gather_epi64(every_eighth, bytes + b, 8);
    for (int k = 0; k < 8; k++) {
      words[8 * b + k] = _mm512_test_epi8_mask(column, _mm512_set1_epi8(static_cast<char>(1 << k)));
    }
  }
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
