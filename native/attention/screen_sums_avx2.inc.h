// What screening (screen.inc.h) needs from AVX2: products of 16-bit integers, at twice the rate of
// float32. Sums of byte products saturate at 16 bits. To be safe, each would have to be widened at
// once, which takes as long, and far more false candidates would get through. Part of
// kernels.inc.h.

#include <immintrin.h>

#include <math.h>

#include <cstdint>
#include <cstring>

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Add two products to each of 8 sums.
inline __m256i plus_products(__m256i sums, __m256i numbers, __m256i others) {
#if defined(__GNUC__) && !defined(__clang__)
  // GCC 12 would compute all products first, and keep most sums in memory.
  __m256i product;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sums), "=&x"(product)
      : "x"(numbers), "x"(others));
  return sums;
#else
  return _mm256_add_epi32(sums, _mm256_madd_epi16(numbers, others));
#endif
}

struct ScreenSums {
  using Number = std::int16_t;
  static constexpr int kTogether = 2;
  static constexpr int kBlock = 6, kColumnsAtOnce = 16;
  static constexpr int kKeyOffset = 0;
  static constexpr float kFalseCandidates = 0.001f;
  static constexpr float kFarthest = 2147483008.0f;  // a bit below the largest float32 under 2^31

  // With numbers up to this, the sum of `dim` products is at most 2^30.
  static float largest_number(std::int64_t dim) {
    const float largest = floorf(sqrtf(1073741824.0f / static_cast<float>(dim)));
    return largest < 32767.0f ? largest : 32767.0f;
  }

  static Vector root(const Vector& x) { return {_mm256_sqrt_ps(x.v)}; }
  static float largest_of(const Vector& x) {
    const __m128 fours = _mm_max_ps(_mm256_castps256_ps128(x.v), _mm256_extractf128_ps(x.v, 1));
    const __m128 pairs = _mm_max_ps(fours, _mm_movehl_ps(fours, fours));
    return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
  }

  static Vector round(const Vector& x, int, Number* out) {
    const __m256i n = _mm256_cvtps_epi32(x.v);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out),
        _mm_packs_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1)));
    return {_mm256_cvtepi32_ps(n)};
  }

  static void store_limits(const Vector& x, std::int32_t* limits) {
    const __m256 at_least = _mm256_max_ps(x.v, _mm256_set1_ps(-kFarthest));
    const __m256 within = _mm256_min_ps(at_least, _mm256_set1_ps(kFarthest));
    const __m256i floors = _mm256_cvtps_epi32(_mm256_floor_ps(within));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(limits),
                        _mm256_sub_epi32(floors, _mm256_set1_epi32(1)));
  }

  // A query has `size` groups of numbers; groups of a key are kKeyTile groups apart.
  static void find(const std::int32_t* queries, std::int64_t size, const float* keys,
                   const std::int32_t* limits, std::uint64_t (&found)[kBlock]) {
    constexpr int C = kColumnsAtOnce / 8, half = kBlock / 2;
    __m256i sums[kBlock][C];
    RELAKIT_UNROLL
    for (int r = 0; r < kBlock; r++) {
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) sums[r][c] = _mm256_setzero_si256();
    }
    // Few pointers, as in product_tile.
    const std::int32_t *upper = queries, *lower = queries + half * size;
    for (std::int64_t p = 0; p < size; p++, upper++, lower++, keys += kKeyTile) {
      __m256i k[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        k[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + c * 8));
      }
      RELAKIT_UNROLL
      for (int r = 0; r < kBlock; r++) {
        const __m256i q = _mm256_set1_epi32(r < half ? upper[r * size] : lower[(r - half) * size]);
        RELAKIT_UNROLL
        for (int c = 0; c < C; c++) sums[r][c] = plus_products(sums[r][c], k[c], q);
      }
    }
    RELAKIT_UNROLL
    for (int r = 0; r < kBlock; r++) {
      const __m256i least_sum = _mm256_set1_epi32(limits[r]);
      found[r] = 0;
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        const __m256 above = _mm256_castsi256_ps(_mm256_cmpgt_epi32(sums[r][c], least_sum));
        found[r] |= static_cast<std::uint64_t>(_mm256_movemask_ps(above)) << (8 * c);
      }
    }
  }

  static void store_chosen(const std::uint8_t* positions, std::uint32_t bits, std::uint8_t* out) {
    const __m128i all = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(positions));
    const __m128i order = _mm_cvtsi64_si128(static_cast<long long>(set_bits.of[bits & 255]));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(all, order));
  }

  // With 16 bits, so few candidates are false that they are removed one by one.
  static void keep(std::uint64_t (&kept)[2], const std::uint8_t* list, int length, KeyBits& bits) {
    for (int w = 0; 64 * w < length; w++) {
      const int count = static_cast<int>(least(64, length - 64 * w));
      std::uint64_t dropped = ~kept[w] & (count == 64 ? ~0ull : (1ull << count) - 1);
      for (; dropped != 0; dropped &= dropped - 1) {
        const int place = list[64 * w + lowest_bit(dropped)];
        bits.words[place / 64] &= ~(1ull << (place % 64));
      }
    }
  }
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
