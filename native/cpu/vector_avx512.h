#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/transpose_avx.h"

namespace relakit::avx512 {
namespace {

// Sixteen floats. vector_portable.h explains the members.
struct Vector {
  static constexpr int width = 16;
  static constexpr int registers = 1;
  __m512 v;

  static Vector all(float x) { return {_mm512_set1_ps(x)}; }
  static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vector load(const float* p, int count) { return {_mm512_maskz_loadu_ps(first(count), p)}; }
  static Vector load(const std::uint16_t* p) {
    return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector load(const std::uint16_t* p, int count) {
    return widened(_mm256_maskz_loadu_epi16(first(count), p));
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, int count) const { _mm512_mask_storeu_ps(p, first(count), v); }
  void store(std::uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrowed());
  }
  void store(std::uint16_t* p, int count) const {
    _mm256_mask_storeu_epi16(p, first(count), narrowed());
  }

  Vector operator+(const Vector& b) const { return {_mm512_add_ps(v, b.v)}; }
  Vector operator-(const Vector& b) const { return {_mm512_sub_ps(v, b.v)}; }
  Vector operator*(const Vector& b) const { return {_mm512_mul_ps(v, b.v)}; }
  Vector operator/(const Vector& b) const { return {_mm512_div_ps(v, b.v)}; }
  Vector plus_product(const Vector& a, const Vector& b) const {
    return {_mm512_fmadd_ps(a.v, b.v, v)};
  }
  // The instructions return their second operand if either is NaN, so a NaN there passes through.
  Vector max(const Vector& b) const { return {_mm512_max_ps(v, b.v)}; }
  Vector clamped(float low, float high) const {
    return {_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), v))};
  }
  Vector rectified() const { return {_mm512_max_ps(_mm512_setzero_ps(), v)}; }
  Vector root() const { return {_mm512_sqrt_ps(v)}; }
  Vector with_bits_shifted(int count, std::uint32_t added) const {
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(v),
                                           static_cast<unsigned int>(count));
    return {_mm512_castsi512_ps(
        _mm512_add_epi32(bits, _mm512_set1_epi32(static_cast<int>(added))))};
  }
  float sum() const {
    const __m256 high = _mm512_extractf32x8_ps(v, 1);
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), high);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
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

 private:
  static __mmask16 first(int count) { return static_cast<__mmask16>((1u << count) - 1); }
  static Vector widened(__m256i halves) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
  }
  __m256i narrowed() const {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), nan,
                                                       _mm512_set1_epi32(0x7FC0)));
  }
};

// One load and four shuffles, as loads are the bottleneck.
inline void load_each(const float* p, Vector (&out)[4]) {
  const __m512 four = _mm512_broadcast_f32x4(_mm_loadu_ps(p));
  out[0].v = _mm512_permute_ps(four, 0x00);
  out[1].v = _mm512_permute_ps(four, 0x55);
  out[2].v = _mm512_permute_ps(four, 0xAA);
  out[3].v = _mm512_permute_ps(four, 0xFF);
}

// One load here too.
inline void load_pair(const float* p, Vector& first, Vector& second) {
  double both;
  std::memcpy(&both, p, sizeof both);
  const __m512 pairs = _mm512_castpd_ps(_mm512_set1_pd(both));
  first.v = _mm512_moveldup_ps(pairs);
  second.v = _mm512_movehdup_ps(pairs);
}

inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(out, _mm512_permutex2var_ps(a.v, low, b.v));
  _mm512_storeu_ps(out + 16, _mm512_permutex2var_ps(a.v, high, b.v));
}

inline __m512 add_pairs(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

// The sums of four vectors.
inline __m128 sums_of(const Vector (&x)[4]) {
  const __m512d ab = _mm512_castps_pd(add_pairs(x[0].v, x[1].v));
  const __m512d cd = _mm512_castps_pd(add_pairs(x[2].v, x[3].v));
  const __m512 quads = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
                                     _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(quads), _mm512_extractf32x8_ps(quads, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

inline void store_sums(const Vector (&x)[4], float* out) { _mm_storeu_ps(out, sums_of(x)); }

inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  const __m128 shifted = _mm_add_ps(sums_of(x), _mm_set1_ps(shift));
  _mm_storeu_ps(out, _mm_max_ps(_mm_setzero_ps(), shifted));
}

}  // namespace
}  // namespace relakit::avx512
