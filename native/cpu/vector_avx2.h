#pragma once

#include <immintrin.h>

#include <cstdint>

#include "cpu/set_bits.h"
#include "cpu/transpose_avx.h"

namespace relakit::avx2 {
namespace {

// Eight floats. vector_portable.h explains the members.
struct Vector {
  static constexpr int width = 8;
  static constexpr int registers = 1;
  __m256 v;

  static Vector all(float x) { return {_mm256_set1_ps(x)}; }
  static Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Vector load(const std::uint16_t* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
  }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store(std::uint16_t* p) const {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i halves = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16),
                                              _mm256_set1_epi32(0x7FC0), nan);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packus_epi32(_mm256_castsi256_si128(halves),
                                      _mm256_extracti128_si256(halves, 1)));
  }
  template <class T>
  static Vector load(const T* p, int count) {
    T part[width] = {};
    for (int i = 0; i < count; i++) part[i] = p[i];
    return load(part);
  }
  template <class T>
  void store(T* p, int count) const {
    T part[width];
    store(part);
    for (int i = 0; i < count; i++) p[i] = part[i];
  }

  Vector operator+(const Vector& b) const { return {_mm256_add_ps(v, b.v)}; }
  Vector operator-(const Vector& b) const { return {_mm256_sub_ps(v, b.v)}; }
  Vector operator*(const Vector& b) const { return {_mm256_mul_ps(v, b.v)}; }
  Vector operator/(const Vector& b) const { return {_mm256_div_ps(v, b.v)}; }
  Vector plus_product(const Vector& a, const Vector& b) const {
    return {_mm256_fmadd_ps(a.v, b.v, v)};
  }
  // The instructions return their second operand if either is NaN, so a NaN there passes through.
  Vector max(const Vector& b) const { return {_mm256_max_ps(v, b.v)}; }
  Vector clamped(float low, float high) const {
    return {_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), v))};
  }
  Vector rectified() const { return {_mm256_max_ps(_mm256_setzero_ps(), v)}; }
  Vector root() const { return {_mm256_sqrt_ps(v)}; }
  Vector with_bits_shifted(int count, std::uint32_t added) const {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(v), count);
    return {_mm256_castsi256_ps(
        _mm256_add_epi32(bits, _mm256_set1_epi32(static_cast<int>(added))))};
  }
  float sum() const {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
  }

  std::uint32_t not_below_or_zero() const {
    const __m256 m = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLE_UQ);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(m));
  }
  std::uint32_t differs_from(const Vector& b) const {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(v, b.v, _CMP_NEQ_UQ)));
  }
  Vector where(std::uint32_t bits) const {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i chosen = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
    return {_mm256_and_ps(v, _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, each)))};
  }
  void store_chosen(std::uint32_t bits, float* p) const {
    const __m128i order = _mm_cvtsi64_si128(static_cast<long long>(set_bits.of[bits & 255]));
    _mm256_storeu_ps(p, _mm256_permutevar8x32_ps(v, _mm256_cvtepu8_epi32(order)));
  }
};

// One load and four shuffles, as loads are the bottleneck.
inline void load_each(const float* p, Vector (&out)[4]) {
  const __m128 numbers = _mm_loadu_ps(p);
  const __m256 four = _mm256_set_m128(numbers, numbers);
  out[0].v = _mm256_permute_ps(four, 0x00);
  out[1].v = _mm256_permute_ps(four, 0x55);
  out[2].v = _mm256_permute_ps(four, 0xAA);
  out[3].v = _mm256_permute_ps(four, 0xFF);
}

inline void load_pair(const float* p, Vector& first, Vector& second) {
  first = Vector::all(p[0]);
  second = Vector::all(p[1]);
}

inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  const __m256 low = _mm256_unpacklo_ps(a.v, b.v), high = _mm256_unpackhi_ps(a.v, b.v);
  _mm256_storeu_ps(out, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(out + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

// The sums of four vectors.
inline __m128 sums_of(const Vector (&x)[4]) {
  const __m256 ab = _mm256_hadd_ps(x[0].v, x[1].v), cd = _mm256_hadd_ps(x[2].v, x[3].v);
  const __m256 quads = _mm256_hadd_ps(ab, cd);
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

inline void store_sums(const Vector (&x)[4], float* out) { _mm_storeu_ps(out, sums_of(x)); }

inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  const __m128 shifted = _mm_add_ps(sums_of(x), _mm_set1_ps(shift));
  _mm_storeu_ps(out, _mm_max_ps(_mm_setzero_ps(), shifted));
}

}  // namespace
}  // namespace relakit::avx2
