#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "bits.h"
#include "transpose_avx.h"

namespace relakit::avx2 {

// For each byte, the positions of its set bits, one byte each.
struct Positions {
  std::uint64_t of[256];
  constexpr Positions() : of() {
    for (unsigned bits = 0; bits < 256; bits++) {
      int count = 0;
      for (unsigned i = 0; i < 8; i++) {
        if ((bits >> i & 1) != 0) of[bits] |= static_cast<std::uint64_t>(i) << (8 * count++);
      }
    }
  }
};
static constexpr Positions positions;

struct Vector {
  static constexpr int width = 8;
  static constexpr int rows = 4, columns = 3;  // score tile: 12 accumulators of 16 registers
  static constexpr int sum_rows = 2;             // dense sums: 2 rows of 4 vectors
  __m256 v;

  static Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Vector load(const std::uint16_t* p) {  // bfloat16: the upper half of a float32
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
  }
  static Vector all(float x) { return {_mm256_set1_ps(x)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  Vector plus_product(const Vector& a, const Vector& b) const {
    return {_mm256_fmadd_ps(a.v, b.v, v)};
  }
  Vector plus(const Vector& b) const { return {_mm256_add_ps(v, b.v)}; }
  Vector times(const Vector& b) const { return {_mm256_mul_ps(v, b.v)}; }
  Vector rectified() const {  // NaN stays NaN: of two operands, the second is returned then
    return {_mm256_max_ps(_mm256_setzero_ps(), v)};
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
    const __m128i order = _mm_cvtsi64_si128(static_cast<long long>(positions.of[bits & 255]));
    _mm256_storeu_ps(p, _mm256_permutevar8x32_ps(v, _mm256_cvtepu8_epi32(order)));
  }
  float sum() const {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_movehdup_ps(s));
    return _mm_cvtss_f32(s);
  }
};

static inline __m128 sums_of(const Vector (&x)[4]) {
  const __m256 ab = _mm256_hadd_ps(x[0].v, x[1].v), cd = _mm256_hadd_ps(x[2].v, x[3].v);
  const __m256 quads = _mm256_hadd_ps(ab, cd);
  return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
}

// The four floats at p, each in all entries of a vector.
static inline void load_each(const float* p, Vector (&out)[4]) {
  for (int i = 0; i < 4; i++) out[i] = Vector::all(p[i]);
}

// out[i] = sum of x[i], for four vectors.
static inline void store_sums(const Vector (&x)[4], float* out) { _mm_storeu_ps(out, sums_of(x)); }

// out[i] = the sum of x[i] plus shift, at least 0.
static inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  const __m128 shifted = _mm_add_ps(sums_of(x), _mm_set1_ps(shift));
  _mm_storeu_ps(out, _mm_max_ps(_mm_setzero_ps(), shifted));
}

// The two floats at p, each in all entries of a vector.
static inline void load_pair(const float* p, Vector& first, Vector& second) {
  first = Vector::all(p[0]);
  second = Vector::all(p[1]);
}

// out = a[0], b[0], a[1], b[1] and so on.
static inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  const __m256 low = _mm256_unpacklo_ps(a.v, b.v), high = _mm256_unpackhi_ps(a.v, b.v);
  _mm256_storeu_ps(out, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(out + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

// One bit per byte of 64: is it not 0?
static inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 2; i++) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes) + i);
    const __m256i zero = _mm256_cmpeq_epi8(x, _mm256_setzero_si256());
    bits |= static_cast<std::uint64_t>(~static_cast<std::uint32_t>(_mm256_movemask_epi8(zero)))
            << (32 * i);
  }
  return bits;
}

// Eight positions at a time. Writes 8 bytes each time: the list needs that much room.
static inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  const std::uint64_t bases = 0x0101010101010101ull * static_cast<std::uint64_t>(base);
  for (int i = 0; i < 8; i++) {
    const std::uint64_t part = bits >> (8 * i) & 255;
    const std::uint64_t found =
        positions.of[part] + bases + 0x0808080808080808ull * static_cast<std::uint64_t>(i);
    std::memcpy(list + length, &found, sizeof found);
    length += count_bits(part);
  }
  return length;
}

}  // namespace relakit::avx2
