// Screening with products of 8-bit integers (AVX-512 VNNI), at four times the rate of float32. Part of
// kernels.inc.h.
//
// A row x is rounded to s * x8 + r with integers x8 from -127 to 127; all keys of a tile share one s.
// For a query q and a key k,
//   q . k = s_q s_k (q8 . k8) + q^ . r_k + r_q . k,       q^ = s_q q8,
// and by the Cauchy-Schwarz inequality the last two terms are at most |q^| |r_k| + |r_q| |k|. So a score is
// above its threshold t only if
//   q8 . k8 > (t - |r_q| |k| - |q^| |r_k|) / (s_q s_k),
// whose right side, with the largest norms among the keys, is one integer for a query and a tile.
// Norms are made too large by a little more than float32 arithmetic can lose; so no score above its
// threshold is missed, whatever the order it is computed in.

#include <immintrin.h>

#include <math.h>

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Products of four bytes each, unsigned and signed, added to 16 sums.
inline __m512i plus_products(__m512i sums, __m512i bytes, __m512i signed_bytes) {
#if defined(__GNUC__) && !defined(__clang__)
  // GCC 12 copies the sums before and after the intrinsic.
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(bytes), "v"(signed_bytes));
  return sums;
#else
  return _mm512_dpbusd_epi32(sums, bytes, signed_bytes);
#endif
}

class Screen {
 public:
  static constexpr bool kIsAvailable = true;
  static constexpr int kBlock = 6;  // queries at once

  Screen(std::int64_t most_queries, std::int64_t dim)
      : dim_(dim),
        slack_(1e-5f + 2.4e-7f * static_cast<float>(dim)),
        // The last block may reach beyond the queries; what it finds there is ignored.
        queries_((most_queries + kBlock) * dim / 4, Start::zero),
        most_(round_up(most_queries, 16) + 16),
        facts_(kFacts * most_, Start::zero),
        rounded_(kKeyTile * dim / 4),
        keys_(kKeyTile * dim / 4) {}

  // Round some of the queries. False if one is not finite: then screening says nothing.
  bool take_queries(Rows rows, std::int64_t first, int count, float threshold) {
    if (!(fabsf(threshold) < HUGE_VALF)) return false;
    auto* out = reinterpret_cast<std::int8_t*>(queries_.data());
    const float limit = threshold - 1e-5f * fabsf(threshold);
    for (int i = 0; i < count; i += 4) {
      const FourRows four(rows, i, count);
      const Sizes sizes = measure(four);
      if (!are_finite(sizes.norms)) return false;
      const __m128 scales = scales_for(sizes.largest);
      const Rests rests = round_rows(four, scales, 0, out + first * dim_);
      const __m128 rest_norms = _mm_fmadd_ps(sizes.norms, _mm_set1_ps(slack_), rests.norms);
      // Keys are stored with 128 added, as the instruction takes unsigned bytes.
      const __m128 facts[kFacts] = {
          _mm_div_ps(_mm_set1_ps(limit), scales), _mm_div_ps(rest_norms, scales),
          _mm_div_ps(_mm_add_ps(sizes.norms, rest_norms), scales),
          _mm_mul_ps(rests.sums, _mm_set1_ps(128.0f))};
      for (int f = 0; f < kFacts; f++) store(facts[f], four, facts_ + f * most_ + first);
    }
    return true;
  }

  bool take_keys(Rows rows, int columns) {
    __m128 largest = _mm_setzero_ps(), norms = largest, rest_norms = largest;
    for (int j = 0; j < columns; j += 4) {
      const Sizes sizes = measure(FourRows(rows, j, columns));
      largest = _mm_max_ps(largest, sizes.largest);
      norms = _mm_max_ps(norms, sizes.norms);
      if (!are_finite(sizes.norms)) return false;
    }
    auto* out = reinterpret_cast<std::int8_t*>(rounded_.data());
    const __m128 scales = scales_for(_mm_set1_ps(most_of(largest)));
    for (int j = 0; j < columns; j += 4) {
      const Rests rests = round_rows(FourRows(rows, j, columns), scales, 128, out);
      rest_norms = _mm_max_ps(rest_norms, rests.norms);
    }
    key_scale_ = _mm_cvtss_f32(scales);
    key_norm_ = most_of(norms);
    key_rest_ = most_of(rest_norms) + slack_ * key_norm_;
    const int end = static_cast<int>(round_up(columns, kColumnsAtOnce));
    std::memset(out + columns * dim_, 0, static_cast<std::size_t>((end - columns) * dim_));
    // Four bytes travel together, like a float.
    const std::int64_t fours = dim_ / 4;
    for (int j = 0; j < end; j += 8) {
      std::int64_t p = 0;
      for (; p + 8 <= fours; p += 8) {
        transpose_8x8(rounded_ + j * fours + p, fours, keys_ + p * kKeyTile + j, kKeyTile);
      }
      for (; p < fours; p++) {
        for (int u = j; u < j + 8; u++) {
          std::memcpy(keys_ + p * kKeyTile + u, rounded_ + u * fours + p, sizeof(float));
        }
      }
    }
    return true;
  }

  // Which of the seen keys may be above the threshold. Returns how many.
  int find(std::int64_t first, int rows, int columns, const KeyBits* seen, KeyBits* found) {
    int total = 0;
    std::int32_t limits[kQueryTile + 16];
    for (int r = 0; r < rows; r += 16) find_limits(first + r, limits + r);
    for (int r = 0; r < rows; r += kBlock) {
      KeyBits block[kBlock] = {};
      for (int c = 0; c < columns; c += kColumnsAtOnce) find_block(first + r, c, limits + r, block);
      for (int u = 0; u < kBlock && r + u < rows; u++) {
        for (int w = 0; w < kWords; w++) {
          found[r + u].words[w] = block[u].words[w] & seen[r + u].words[w];
        }
        total += found[r + u].count();
      }
    }
    return total;
  }

  // Keep those of the listed scores that are above zero after adding `shift`: weights, list and bits.
  static int keep_positive(const float* scores, float shift, const std::uint8_t* list, int length,
                           float* weights, std::uint8_t* kept_list, KeyBits& bits) {
    std::uint64_t kept[2] = {0, 0};
    int count = 0;
    for (int t = 0; t < length; t += 16) {
      const __m512 x = _mm512_add_ps(_mm512_loadu_ps(scores + t), _mm512_set1_ps(shift));
      const __mmask16 chosen = positive(x, length - t);
      _mm512_storeu_ps(weights + count, _mm512_maskz_compress_ps(chosen, x));
      const __m128i positions = _mm_loadu_si128(reinterpret_cast<const __m128i*>(list + t));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(kept_list + count),
                       _mm_maskz_compress_epi8(chosen, positions));
      kept[t / 64] |= static_cast<std::uint64_t>(chosen) << (t % 64);
      count += count_bits(chosen);
    }
    put_back(kept, bits);
    return count;
  }

  // Of the bits, keep those whose weight in the list is not zero.
  static void keep_bits(const float* weights, int length, KeyBits& bits) {
    std::uint64_t kept[2] = {0, 0};
    for (int t = 0; t < length; t += 16) {
      const __m512 x = _mm512_loadu_ps(weights + t);
      kept[t / 64] |= static_cast<std::uint64_t>(positive(x, length - t)) << (t % 64);
    }
    put_back(kept, bits);
  }

 private:
  static constexpr int kColumnsAtOnce = 64, kFacts = 4;
  static constexpr float kLeastNorm = 1e-17f;  // squares of less than 1e-19 vanish

  // Which of the first `count` numbers are not <= 0.
  static __mmask16 positive(__m512 x, int count) {
    const auto valid = static_cast<__mmask16>(_bzhi_u32(0xFFFF, static_cast<unsigned>(count)));
    return _mm512_mask_cmp_ps_mask(valid, x, _mm512_setzero_ps(), _CMP_NLE_UQ);
  }

  // Move the bits of a list's entries back to where the entries came from.
  static void put_back(std::uint64_t (&kept)[2], KeyBits& bits) {
    static_assert(kWords <= 2, "the list's bits are kept in two words");
    for (int w = 0; w < kWords; w++) {
      const int taken = count_bits(bits.words[w]);
      bits.words[w] = _pdep_u64(kept[0], bits.words[w]);
      if (w + 1 == kWords || taken == 0) continue;
      kept[0] = taken == 64 ? kept[1] : kept[0] >> taken | kept[1] << (64 - taken);
      kept[1] = taken == 64 ? 0 : kept[1] >> taken;
    }
  }

  // Four rows at once, as sums over four rows take as long as over one. If there are fewer, the last is
  // repeated.
  struct FourRows {
    FourRows(Rows rows, std::int64_t first, std::int64_t count) {
      for (int u = 0; u < 4; u++) {
        place[u] = least(first + u, count - 1);
        row[u] = rows[place[u]];
      }
    }
    const float* row[4];
    std::int64_t place[4];
  };
  struct Sizes {
    __m128 largest, norms;  // norms are never too small
  };
  struct Rests {
    __m128 norms;  // of what rounding removes
    __m128 sums;   // of the integers
  };

  static void store(__m128 x, const FourRows& four, float* out) {
    float numbers[4];
    _mm_storeu_ps(numbers, x);
    for (int u = 0; u < 4; u++) out[four.place[u]] = numbers[u];
  }

  static bool are_finite(__m128 norms) {
    return _mm_cmp_ps_mask(norms, _mm_set1_ps(HUGE_VALF), _CMP_NLT_UQ) == 0;
  }

  static float most_of(__m128 x) {
    const __m128 pairs = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
  }

  // If the largest entry is tiny or 0, any scale does.
  static __m128 scales_for(__m128 largest) {
    const __m128 least_scale = _mm_set1_ps(1e-30f);
    const __mmask8 is_large = _mm_cmp_ps_mask(largest, least_scale, _CMP_GT_OQ);
    return _mm_mask_div_ps(least_scale, is_large, largest, _mm_set1_ps(127.0f));
  }

  static __m128 norms_of(const Vector (&squares)[4]) {
    return _mm_fmadd_ps(_mm_sqrt_ps(sums_of(squares)), _mm_set1_ps(1.0001f),
                        _mm_set1_ps(kLeastNorm));
  }

  Sizes measure(const FourRows& four) const {
    Vector squares[4];
    __m128 largest = _mm_setzero_ps();
    RELAKIT_UNROLL
    for (int u = 0; u < 4; u++) {
      __m512 most = _mm512_setzero_ps();
      squares[u] = Vector::all(0.0f);
      for (std::int64_t p = 0; p < dim_; p += 16) {
        const Vector x = Vector::load(four.row[u] + p);
        most = _mm512_max_ps(most, _mm512_abs_ps(x.v));
        squares[u] = squares[u].plus_product(x, x);
      }
      largest = _mm_mask_mov_ps(largest, static_cast<__mmask8>(1 << u),
                                _mm_set1_ps(_mm512_reduce_max_ps(most)));
    }
    return {largest, norms_of(squares)};
  }

  // Rounded rows go to their places in out.
  Rests round_rows(const FourRows& four, __m128 scales, int shift, std::int8_t* out) const {
    float scale[4], inverse[4];
    _mm_storeu_ps(scale, scales);
    _mm_storeu_ps(inverse, _mm_div_ps(_mm_set1_ps(1.0f), scales));
    Vector rests[4], sums[4];
    RELAKIT_UNROLL
    for (int u = 0; u < 4; u++) {
      rests[u] = sums[u] = Vector::all(0.0f);
      const __m512 by = _mm512_set1_ps(inverse[u]);
      const Vector back = Vector::all(-scale[u]);
      std::int8_t* bytes = out + four.place[u] * dim_;
      for (std::int64_t p = 0; p < dim_; p += 16) {
        const Vector x = Vector::load(four.row[u] + p);
        const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(x.v, by));
        const Vector whole{_mm512_cvtepi32_ps(n)};
        const Vector rest = x.plus_product(whole, back);
        rests[u] = rests[u].plus_product(rest, rest);
        sums[u] = sums[u] + whole;
        const __m512i shifted = _mm512_add_epi32(n, _mm512_set1_epi32(shift));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + p), _mm512_cvtepi32_epi8(shifted));
      }
    }
    return {norms_of(rests), sums_of(sums)};
  }

  // For 16 queries, the limit that a product of integers must exceed.
  void find_limits(std::int64_t i, std::int32_t* limits) {
    const auto fact = [&](int f) { return _mm512_loadu_ps(facts_ + f * most_ + i); };
    const __m512 margins =
        _mm512_fmadd_ps(fact(1), _mm512_set1_ps(key_norm_),
                        _mm512_mul_ps(fact(2), _mm512_set1_ps(key_rest_)));
    const __m512 x = _mm512_add_ps(
        _mm512_div_ps(_mm512_sub_ps(fact(0), margins), _mm512_set1_ps(key_scale_)), fact(3));
    // Products are whole numbers below 2^24, as are 128 times sums. Beyond that, all or none exceed the
    // limit; all if x is NaN, as max then returns its second operand.
    const __m512 at_least = _mm512_max_ps(x, _mm512_set1_ps(-2e7f));
    const __m512 within = _mm512_min_ps(at_least, _mm512_set1_ps(2e7f));
    const __m512i floors =
        _mm512_cvt_roundps_epi32(within, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    _mm512_storeu_si512(limits, _mm512_sub_epi32(floors, _mm512_set1_epi32(1)));
  }

  void find_block(std::int64_t first, int column, const std::int32_t* limits, KeyBits* found) {
    constexpr int C = kColumnsAtOnce / 16;
    const auto* q8 = reinterpret_cast<const std::int32_t*>(queries_.data()) + first * (dim_ / 4);
    __m512i sums[kBlock][C];
    RELAKIT_UNROLL
    for (int r = 0; r < kBlock; r++) {
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) sums[r][c] = _mm512_setzero_si512();
    }
    for (std::int64_t p = 0; p < dim_ / 4; p++) {
      __m512i k[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        k[c] = _mm512_loadu_si512(keys_ + p * kKeyTile + column + c * 16);
      }
      RELAKIT_UNROLL
      for (int r = 0; r < kBlock; r++) {
        const __m512i q = _mm512_set1_epi32(q8[r * (dim_ / 4) + p]);
        RELAKIT_UNROLL
        for (int c = 0; c < C; c++) sums[r][c] = plus_products(sums[r][c], k[c], q);
      }
    }
    RELAKIT_UNROLL
    for (int r = 0; r < kBlock; r++) {
      const __m512i least_sum = _mm512_set1_epi32(limits[r]);
      std::uint64_t bits = 0;
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        bits |= static_cast<std::uint64_t>(_mm512_cmpgt_epi32_mask(sums[r][c], least_sum)) << (16 * c);
      }
      found[r].words[column / 64] = bits;
    }
  }

  const std::int64_t dim_;
  const float slack_;
  Buffer queries_;
  const std::int64_t most_;  // queries, and room for 16 more
  Buffer facts_;             // one array of most_ numbers after the other
  Buffer rounded_, keys_;
  float key_scale_ = 1.0f, key_norm_ = 0.0f, key_rest_ = 0.0f;
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
