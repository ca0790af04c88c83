#pragma once

#include <immintrin.h>

#include <cstdint>

namespace relakit::lanes::avx512 {
namespace {

// Members as in portable.h.
struct Lanes {
  static constexpr int width = 16;
  __m512 v;

  static Lanes all(float x) { return {_mm512_set1_ps(x)}; }
  static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Lanes load(const float* p, int count) { return {_mm512_maskz_loadu_ps(first(count), p)}; }
  static Lanes load(const std::uint16_t* p) {
    return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Lanes load(const std::uint16_t* p, int count) {
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

  Lanes operator+(const Lanes& b) const { return {_mm512_add_ps(v, b.v)}; }
  Lanes operator-(const Lanes& b) const { return {_mm512_sub_ps(v, b.v)}; }
  Lanes operator*(const Lanes& b) const { return {_mm512_mul_ps(v, b.v)}; }
  Lanes operator/(const Lanes& b) const { return {_mm512_div_ps(v, b.v)}; }
  Lanes times_plus(const Lanes& b, const Lanes& c) const { return {_mm512_fmadd_ps(v, b.v, c.v)}; }
  Lanes max(const Lanes& b) const { return {_mm512_max_ps(v, b.v)}; }
  Lanes clamped(float low, float high) const {  // of two operands, NaN passes in the second one
    return {_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), v))};
  }
  Lanes with_bits_shifted(int count, std::uint32_t added) const {
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

 private:
  static __mmask16 first(int count) { return static_cast<__mmask16>((1u << count) - 1); }
  static Lanes widened(__m256i halves) {
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

}  // namespace
}  // namespace relakit::lanes::avx512
