// Screening with products of 8-bit integers (AVX-512 VNNI): four times the rate of float32.
//
// A row x is rounded to s * x8 + r with integers x8 from -127 to 127; all keys of a tile share one s.
// For a query q and a key k,
//   q . k = s_q s_k (q8 . k8) + q^ . r_k + r_q . k,       q^ = s_q q8,
// and by Cauchy and Schwarz the last two terms are at most |q^| |r_k| + |r_q| |k|. So a score is
// above its threshold t only if
//   q8 . k8 > (t - |r_q| |k| - |q^| |r_k|) / (s_q s_k),
// whose right side, with the largest norms among the keys, is one integer for a query and a tile.
// Norms are taken a little too large, by more than float32 arithmetic loses anywhere; so nothing that
// is above its threshold, also when computed in another order, can be missed.

#include <immintrin.h>

#include <math.h>

namespace relakit::RELAKIT_ISA {
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
        // Blocks may reach beyond the queries that were taken, and find what nobody asks for.
        queries_((most_queries + kBlock) * dim / 4, Start::zero),
        facts_((most_queries + kBlock) * kFacts, Start::zero),
        rounded_(kKeyTile * dim / 4),
        keys_(kKeyTile * dim / 4) {}

  // Round some of the queries. False where one is not finite: then nothing can be told.
  bool take_queries(Rows rows, std::int64_t first, int count, float threshold) {
    if (!(fabsf(threshold) < HUGE_VALF)) return false;
    auto* out = reinterpret_cast<std::int8_t*>(queries_.data());
    for (std::int64_t i = first; i < first + count; i++) {
      const float* row = rows[i - first];
      const Size size = measure(row);
      if (!(size.norm < HUGE_VALF)) return false;
      const float scale = scale_for(size.largest);
      const Rest rest = round_row(row, scale, 0, out + i * dim_);
      const float rest_norm = rest.norm + slack_ * size.norm;
      float* facts = facts_ + i * kFacts;
      facts[0] = (threshold - 1e-5f * fabsf(threshold)) / scale;
      facts[1] = rest_norm / scale;
      facts[2] = (size.norm + rest_norm) / scale;
      // Keys are stored with 128 added, as the instruction wants them unsigned.
      facts[3] = 128.0f * static_cast<float>(rest.sum);
    }
    return true;
  }

  bool take_keys(Rows rows, int columns) {
    float largest = 0.0f, norm = 0.0f, rest_norm = 0.0f;
    for (int j = 0; j < columns; j++) {
      const Size size = measure(rows[j]);
      if (!(size.norm < HUGE_VALF)) return false;
      if (size.largest > largest) largest = size.largest;
      if (size.norm > norm) norm = size.norm;
    }
    auto* out = reinterpret_cast<std::int8_t*>(rounded_.data());
    key_scale_ = scale_for(largest);
    for (int j = 0; j < columns; j++) {
      const Rest rest = round_row(rows[j], key_scale_, 128, out + j * dim_);
      if (rest.norm > rest_norm) rest_norm = rest.norm;
    }
    key_norm_ = norm;
    key_rest_ = rest_norm + slack_ * norm;
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
    for (int r = 0; r < rows; r += kBlock) {
      KeyBits block[kBlock] = {};
      std::int32_t limits[kBlock];
      for (int u = 0; u < kBlock; u++) limits[u] = limit(first + r + u);
      for (int c = 0; c < columns; c += kColumnsAtOnce) find_block(first + r, c, limits, block);
      for (int u = 0; u < kBlock && r + u < rows; u++) {
        for (int w = 0; w < kWords; w++) {
          found[r + u].words[w] = block[u].words[w] & seen[r + u].words[w];
        }
        total += found[r + u].count();
      }
    }
    return total;
  }

  // Of listed scores, keep those that are above zero once `shift` is added: weights, list and bits.
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

  // Bits of a list's entries go back to where the entries came from.
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

  struct Size {
    float largest, norm;  // norms are never too small
  };
  struct Rest {
    float norm;  // of what rounding takes away
    int sum;     // of the integers
  };

  // Where the largest entry is tiny or 0, any scale does.
  static float scale_for(float largest) { return largest > 1e-30f ? largest / 127.0f : 1e-30f; }

  Size measure(const float* x) const {
    __m512 most = _mm512_setzero_ps(), squares = _mm512_setzero_ps();
    for (std::int64_t p = 0; p < dim_; p += 16) {
      const __m512 v = _mm512_loadu_ps(x + p);
      most = _mm512_max_ps(most, _mm512_abs_ps(v));
      squares = _mm512_fmadd_ps(v, v, squares);
    }
    return {_mm512_reduce_max_ps(most), sqrtf(_mm512_reduce_add_ps(squares)) * 1.0001f + kLeastNorm};
  }

  Rest round_row(const float* x, float scale, int shift, std::int8_t* out) const {
    const __m512 inverse = _mm512_set1_ps(1.0f / scale), back = _mm512_set1_ps(-scale);
    __m512 rests = _mm512_setzero_ps();
    __m512i sum = _mm512_setzero_si512();
    for (std::int64_t p = 0; p < dim_; p += 16) {
      const __m512 v = _mm512_loadu_ps(x + p);
      const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(v, inverse));
      const __m512 rest = _mm512_fmadd_ps(_mm512_cvtepi32_ps(n), back, v);
      rests = _mm512_fmadd_ps(rest, rest, rests);
      sum = _mm512_add_epi32(sum, n);
      const __m512i shifted = _mm512_add_epi32(n, _mm512_set1_epi32(shift));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + p), _mm512_cvtepi32_epi8(shifted));
    }
    const float norm = sqrtf(_mm512_reduce_add_ps(rests)) * 1.0001f + kLeastNorm;
    return {norm, _mm512_reduce_add_epi32(sum)};
  }

  // The product of integers must be above it.
  std::int32_t limit(std::int64_t i) {
    const float* facts = facts_ + i * kFacts;
    const float margin = facts[1] * key_norm_ + facts[2] * key_rest_;
    // Products are whole numbers below 2^24, and so are 128 times sums. Beyond that, all or none.
    const float x = (facts[0] - margin) / key_scale_ + facts[3];
    return static_cast<std::int32_t>(floorf(x < -2e7f ? -2e7f : x > 2e7f ? 2e7f : x)) - 1;
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
  Buffer queries_, facts_, rounded_, keys_;
  float key_scale_ = 1.0f, key_norm_ = 0.0f, key_rest_ = 0.0f;
};

}  // namespace
}  // namespace relakit::RELAKIT_ISA
