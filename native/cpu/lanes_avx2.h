#pragma once

#include <immintrin.h>

#include <cstdint>

namespace relakit::lanes::avx2 {
namespace {

// Members as in portable.h.
struct Lanes {
  static constexpr int width = 8;
  __m256 v;

  static Lanes all(float x) { return {_mm256_set1_ps(x)}; }
  static Lanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Lanes load(const std::uint16_t* p) {
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
  static Lanes load(const T* p, int count) {
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

  Lanes operator+(const Lanes& b) const { return {_mm256_add_ps(v, b.v)}; }
  Lanes operator-(const Lanes& b) const { return {_mm256_sub_ps(v, b.v)}; }
  Lanes operator*(const Lanes& b) const { return {_mm256_mul_ps(v, b.v)}; }
  Lanes operator/(const Lanes& b) const { return {_mm256_div_ps(v, b.v)}; }
  Lanes times_plus(const Lanes& b, const Lanes& c) const { return {_mm256_fmadd_ps(v, b.v, c.v)}; }
  Lanes max(const Lanes& b) const { return {_mm256_max_ps(v, b.v)}; }
  Lanes clamped(float low, float high) const {  // of two operands, NaN passes in the second one
    return {_mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), v))};
  }
  Lanes with_bits_shifted(int count, std::uint32_t added) const {
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
};

}  // namespace
}  // namespace relakit::lanes::avx2
