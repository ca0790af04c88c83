// Screening: finds which scores can be above their threshold, with products of small integers. Part
// of kernels.inc.h.
//
// A row x is rounded: x = s * x' + r, with integers x' and a remainder r. All keys of a tile share
// one s. For a query q and a key k,
//   q . k = s_q s_k (q' . k') + q^ . r_k + r_q . k,       q^ = s_q q',
// and by the Cauchy-Schwarz inequality the last two terms are at most |q^| |r_k| + |r_q| |k|. So a
// score is above its threshold t only if
//   q' . k' > (t - |r_q| |k| - |q^| |r_k|) / (s_q s_k).
// With the largest norms among the keys, the right side is one integer per query and tile. Norms
// are enlarged by a little more than float32 arithmetic can lose, so no score above its threshold
// is missed, whatever order it is computed in.
//
// ScreenSums (screen_sums_*.inc.h) provides what depends on the instruction set:
//   Number, kTogether            the integer type, and how many fill 32 bits: a group that is
//                                multiplied at once
//   kBlock, kColumnsAtOnce       how many queries and keys have their products in registers at once
//   kKeyOffset                   what is added to the integers of keys
//   kFalseCandidates             the least share of scores that is let through besides those above
//                                the threshold, for normally distributed rows
//   largest_number(dim)          the largest integers for which sums of products are exact
//   root, largest_of             square roots and largest entry of a vector
//   round(x, offset, out)        rounds x; writes it to out with the offset, returns it without
//   store_limits(x, out)         stores x rounded down, minus 1; if x is NaN, less than any sum
//   find                         for kBlock queries: a bit for each key whose sum exceeds the limit
//   store_chosen                 stores those of kWidth positions that have a set bit
//   keep(kept, list, length, bits)  of the set bits, which are listed in `list`, keeps those that
//                                have a bit in `kept`

#include <math.h>

#include <cstdint>
#include <cstring>

namespace relakit::attention::RELAKIT_ISA {
namespace {

class Screen {
 public:
  static constexpr bool kIsAvailable = true;
  static constexpr float kFalseCandidates = ScreenSums::kFalseCandidates;
  static constexpr int kBlock = ScreenSums::kBlock;  // queries that are screened at once

  Screen(std::int64_t most_queries, std::int64_t dim)
      : dim_(dim),
        groups_(dim / ScreenSums::kTogether),
        slack_(1e-5f + 2.4e-7f * static_cast<float>(dim)),
        largest_number_(dim > 0 ? ScreenSums::largest_number(dim) : 1.0f),
        // The last block may reach beyond the queries; what it finds there is ignored.
        queries_((most_queries + kBlock) * groups_, Start::zero),
        most_(round_up(most_queries, kWidth) + kWidth),
        facts_(kFacts * most_, Start::zero),
        rounded_(kKeyTile * groups_),
        keys_(kKeyTile * groups_) {}

  // Round some of the queries, at most kQueryTile. False if one is not finite, which rules out
  // screening.
  bool take_queries(Rows rows, std::int64_t first, int count, float threshold) {
    if (!(fabsf(threshold) < HUGE_VALF)) return false;
    float squares[kRoom] = {}, scales[kRoom] = {}, inverses[kRoom] = {}, rests[kRoom] = {},
          sums[kRoom] = {};
    for (int i = 0; i < count; i += 4) measure(rows, i, count, squares + i, scales + i);
    for (int i = 0; i < count; i += kWidth) {
      const Vector scale = scale_for(Vector::load(scales + i));
      scale.store(scales + i);
      (Vector::all(1.0f) / scale).store(inverses + i);
    }
    Number* out = numbers(queries_) + first * dim_;
    for (int i = 0; i < count; i += 4) {
      round_rows(rows, i, count, scales + i, inverses + i, 0, out, rests + i, sums + i);
    }
    const Vector limit = Vector::all(threshold - 1e-5f * fabsf(threshold));
    for (int i = 0; i < count; i += kWidth) {
      const Vector scale = Vector::load(scales + i), norm = norm_of(squares + i);
      if (!are_finite(norm, count - i)) return false;
      const Vector rest = norm_of(rests + i).plus_product(norm, Vector::all(slack_));
      const Vector facts[kFacts] = {
          limit / scale, rest / scale, (norm + rest) / scale,
          Vector::load(sums + i) * Vector::all(static_cast<float>(ScreenSums::kKeyOffset))};
      for (int f = 0; f < kFacts; f++) {
        float* place = facts_ + f * most_ + first + i;
        if (i + kWidth <= count) {
          facts[f].store(place);
        } else {  // the facts of the next queries stay
          facts[f].store(place, count - i);
        }
      }
    }
    return true;
  }

  bool take_keys(Rows rows, int columns) {
    float squares[kRoom], largest[kRoom], scales[kWidth], inverses[kWidth], rests[4], sums[4];
    float most = 0.0f, most_square = 0.0f, most_rest = 0.0f;
    for (int j = 0; j < columns; j += 4) {
      measure(rows, j, columns, squares + j, largest + j);
      for (int u = j; u < j + 4; u++) {
        if (!(squares[u] < HUGE_VALF)) return false;
        most = most < largest[u] ? largest[u] : most;
        most_square = most_square < squares[u] ? squares[u] : most_square;
      }
    }
    const Vector scale = scale_for(Vector::all(most));  // one for all keys
    scale.store(scales);
    (Vector::all(1.0f) / scale).store(inverses);
    Number* out = numbers(rounded_);
    for (int j = 0; j < columns; j += 4) {
      round_rows(rows, j, columns, scales, inverses, ScreenSums::kKeyOffset, out, rests, sums);
      for (int u = 0; u < 4; u++) most_rest = most_rest < rests[u] ? rests[u] : most_rest;
    }
    key_scale_ = scales[0];
    key_norm_ = norm_of(most_square);
    key_rest_ = norm_of(most_rest) + slack_ * key_norm_;
    const int end = static_cast<int>(round_up(columns, ScreenSums::kColumnsAtOnce));
    std::memset(out + columns * dim_, 0,
                static_cast<std::size_t>((end - columns) * dim_) * sizeof(Number));
    transpose_groups(end);
    return true;
  }

  // Find the seen keys whose scores may be above the threshold. Returns how many there are.
  int find(std::int64_t first, int rows, int columns, const KeyBits* seen, KeyBits* found) {
    int total = 0;
    std::int32_t limits[kQueryTile + kWidth + kBlock] = {};
    for (int r = 0; r < rows; r += kWidth) find_limits(first + r, limits + r);
    const auto* queries = reinterpret_cast<const std::int32_t*>(queries_.data()) + first * groups_;
    for (int r = 0; r < rows; r += kBlock) {
      KeyBits block[kBlock] = {};
      for (int c = 0; c < columns; c += ScreenSums::kColumnsAtOnce) {
        std::uint64_t bits[kBlock];
        ScreenSums::find(queries + r * groups_, groups_, keys_ + c, limits + r, bits);
        for (int u = 0; u < kBlock; u++) block[u].words[c / 64] |= bits[u] << (c % 64);
      }
      for (int u = 0; u < kBlock && r + u < rows; u++) {
        for (int w = 0; w < kWords; w++) {
          found[r + u].words[w] = block[u].words[w] & seen[r + u].words[w];
        }
        total += found[r + u].count();
      }
    }
    return total;
  }

  // Keep the listed scores that are above zero after adding `shift`: weights, list and bits.
  static int keep_positive(const float* scores, float shift, const std::uint8_t* list, int length,
                           float* weights, std::uint8_t* kept_list, KeyBits& bits) {
    std::uint64_t kept[2] = {0, 0};
    int count = 0;
    for (int t = 0; t < length; t += kWidth) {
      const Vector x = Vector::load(scores + t) + Vector::all(shift);
      const std::uint32_t chosen = x.not_below_or_zero() & first_bits(length - t);
      x.store_chosen(chosen, weights + count);
      ScreenSums::store_chosen(list + t, chosen, kept_list + count);
      kept[t / 64] |= static_cast<std::uint64_t>(chosen) << (t % 64);
      count += count_bits(chosen);
    }
    ScreenSums::keep(kept, list, length, bits);
    return count;
  }

  // Keep the bits whose weight in the list is not zero.
  static void keep_bits(const float* weights, const std::uint8_t* list, int length, KeyBits& bits) {
    std::uint64_t kept[2] = {0, 0};
    for (int t = 0; t < length; t += kWidth) {
      const std::uint32_t chosen =
          Vector::load(weights + t).not_below_or_zero() & first_bits(length - t);
      kept[t / 64] |= static_cast<std::uint64_t>(chosen) << (t % 64);
    }
    ScreenSums::keep(kept, list, length, bits);
  }

 private:
  using Number = ScreenSums::Number;
  static constexpr int kFacts = 4;
  static constexpr int kRoom = kKeyTile + kWidth;  // a number per row of a tile, in whole vectors
  static constexpr float kLeastNorm = 1e-17f;      // squares of numbers below 1e-19 vanish
  static constexpr float kEnlarged = 1.0001f;

  static Number* numbers(Buffer& buffer) { return reinterpret_cast<Number*>(buffer.data()); }

  static std::uint32_t first_bits(int count) {
    return count >= kWidth ? (1u << kWidth) - 1 : (1u << count) - 1;
  }

  // The norms, never too small.
  static Vector norm_of(const float* squares) {
    return Vector::all(kLeastNorm)
        .plus_product(ScreenSums::root(Vector::load(squares)), Vector::all(kEnlarged));
  }
  static float norm_of(float square) { return kLeastNorm + sqrtf(square) * kEnlarged; }

  // inf - inf and NaN - NaN are not 0.
  static bool are_finite(const Vector& norms, int count) {
    return ((norms - norms).differs_from(Vector::all(0.0f)) & first_bits(count)) == 0;
  }

  // The unit of the integers. If the largest entry is tiny or 0, any will do.
  Vector scale_for(const Vector& largest) const {
    return largest.max(Vector::all(1e-30f)) / Vector::all(largest_number_);
  }

  // Rows are taken four at a time, because sums over four rows take as long as over one. If there
  // are fewer, the last row is repeated, and its extra results lie beyond those of the rows.
  static const float* row(Rows rows, int first, int u, int count) {
    return rows[least(first + u, count - 1)];
  }

  void measure(Rows rows, int first, int count, float* squares, float* largest) const {
    Vector sums[4];
    RELAKIT_UNROLL
    for (int u = 0; u < 4; u++) {
      const float* in = row(rows, first, u, count);
      Vector most = Vector::all(0.0f);
      sums[u] = Vector::all(0.0f);
      for (std::int64_t p = 0; p < dim_; p += kWidth) {
        const Vector x = Vector::load(in + p);
        most = most.max(x).max(Vector::all(0.0f) - x);
        sums[u] = sums[u].plus_product(x, x);
      }
      largest[u] = ScreenSums::largest_of(most);
    }
    store_sums(sums, squares);
  }

  // Write the rounded rows to `out`, and beside it the sums of their integers and the squares of
  // what rounding removes.
  void round_rows(Rows rows, int first, int count, const float* scales, const float* inverses,
                  int offset, Number* out, float* rest_squares, float* integer_sums) const {
    Vector rests[4], sums[4];
    RELAKIT_UNROLL
    for (int u = 0; u < 4; u++) {
      rests[u] = sums[u] = Vector::all(0.0f);
      const float* in = row(rows, first, u, count);
      Number* to = out + least(first + u, count - 1) * dim_;
      const Vector by = Vector::all(inverses[u]), back = Vector::all(-scales[u]);
      for (std::int64_t p = 0; p < dim_; p += kWidth) {
        const Vector x = Vector::load(in + p);
        const Vector whole = ScreenSums::round(x * by, offset, to + p);
        const Vector rest = x.plus_product(whole, back);
        rests[u] = rests[u].plus_product(rest, rest);
        sums[u] = sums[u] + whole;
      }
    }
    store_sums(rests, rest_squares);
    store_sums(sums, integer_sums);
  }

  // A group of integers is moved like a float.
  void transpose_groups(int columns) {
    for (int j = 0; j < columns; j += 8) {
      std::int64_t p = 0;
      for (; p + 8 <= groups_; p += 8) {
        transpose_8x8(rounded_ + j * groups_ + p, groups_, keys_ + p * kKeyTile + j, kKeyTile);
      }
      for (; p < groups_; p++) {
        for (int u = j; u < j + 8; u++) {
          std::memcpy(keys_ + p * kKeyTile + u, rounded_ + u * groups_ + p, sizeof(float));
        }
      }
    }
  }

  // For kWidth queries, find the limits that products of integers must exceed.
  void find_limits(std::int64_t i, std::int32_t* limits) {
    const auto fact = [&](int f) { return Vector::load(facts_ + f * most_ + i); };
    const Vector margins =
        (fact(2) * Vector::all(key_rest_)).plus_product(fact(1), Vector::all(key_norm_));
    ScreenSums::store_limits((fact(0) - margins) / Vector::all(key_scale_) + fact(3), limits);
  }

  const std::int64_t dim_, groups_;
  const float slack_, largest_number_;
  Buffer queries_;
  const std::int64_t most_;  // queries, and room for a vector more
  Buffer facts_;             // one array of most_ numbers after the other
  Buffer rounded_, keys_;
  float key_scale_ = 1.0f, key_norm_ = 0.0f, key_rest_ = 0.0f;
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
