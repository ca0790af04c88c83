// What screening (screen.inc.h) needs from AVX-512: products of 8-bit integers (VNNI), at four
// times the rate of float32. Part of kernels.inc.h.

#include <immintrin.h>

#include <cstdint>

namespace relakit::attention::RELAKIT_ISA {
namespace {

struct ScreenSums {
  using Number = std::int8_t;
  static constexpr int kTogether = 4;
  static constexpr int kBlock = 6, kColumnsAtOnce = 64;
  static constexpr int kKeyOffset = 128;  // the instruction takes unsigned bytes
  static constexpr float kFalseCandidates = 0.02f;
  static constexpr float kFarthest = 2e7f;  // sums of products, and 128 times sums, are below 2^24

  static float largest_number(std::int64_t) { return 127.0f; }

  static Vector root(const Vector& x) { return {_mm512_sqrt_ps(x.v)}; }
  static float largest_of(const Vector& x) { return _mm512_reduce_max_ps(x.v); }

  static Vector round(const Vector& x, int offset, Number* out) {
    const __m512i n = _mm512_cvtps_epi32(x.v);
    const __m512i shifted = _mm512_add_epi32(n, _mm512_set1_epi32(offset));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(shifted));
    return {_mm512_cvtepi32_ps(n)};
  }

  static void store_limits(const Vector& x, std::int32_t* limits) {
    const __m512 at_least = _mm512_max_ps(x.v, _mm512_set1_ps(-kFarthest));
    const __m512 within = _mm512_min_ps(at_least, _mm512_set1_ps(kFarthest));
    const __m512i floors =
        _mm512_cvt_roundps_epi32(within, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    _mm512_storeu_si512(limits, _mm512_sub_epi32(floors, _mm512_set1_epi32(1)));
  }

  // A query has `size` groups of numbers; groups of a key are kKeyTile groups apart.
  static void find(const std::int32_t* queries, std::int64_t size, const float* keys,
                   const std::int32_t* limits, std::uint64_t (&found)[kBlock]) {
    constexpr int C = kColumnsAtOnce / 16;
    __m512i sums[kBlock][C];
    RELAKIT_UNROLL
    for (int r = 0; r < kBlock; r++) {
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) sums[r][c] = _mm512_setzero_si512();
    }
    for (std::int64_t p = 0; p < size; p++) {
      __m512i k[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) k[c] = _mm512_loadu_si512(keys + p * kKeyTile + c * 16);
      RELAKIT_UNROLL
      for (int r = 0; r < kBlock; r++) {
        const __m512i q = _mm512_set1_epi32(queries[r * size + p]);
        RELAKIT_UNROLL
        for (int c = 0; c < C; c++) sums[r][c] = plus_byte_products(sums[r][c], k[c], q);
      }
    }
    RELAKIT_UNROLL
    for (int r = 0; r < kBlock; r++) {
      const __m512i least_sum = _mm512_set1_epi32(limits[r]);
      found[r] = 0;
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        const __mmask16 above = _mm512_cmpgt_epi32_mask(sums[r][c], least_sum);
        found[r] |= static_cast<std::uint64_t>(above) << (16 * c);
      }
    }
  }

  static void store_chosen(const std::uint8_t* positions, std::uint32_t bits, std::uint8_t* out) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(positions));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), chosen_bytes(bits, all));
  }

  static void keep(std::uint64_t (&kept)[2], const std::uint8_t*, int, KeyBits& bits) {
    static_assert(kWords <= 2, "the list's bits are kept in two words");
    for (int w = 0; w < kWords; w++) {
      const int taken = count_bits(bits.words[w]);
      bits.words[w] = _pdep_u64(kept[0], bits.words[w]);
      if (w + 1 == kWords || taken == 0) continue;
      kept[0] = taken == 64 ? kept[1] : kept[0] >> taken | kept[1] << (64 - taken);
      kept[1] = taken == 64 ? 0 : kept[1] >> taken;
    }
  }
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
