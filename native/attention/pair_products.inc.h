// PairProducts: dense products of rows of bfloat16, two numbers at a time, where the processor has
// instructions for it. Part of kernels.inc.h.
//
// Two neighbours of a row travel like one float, and PairSums (cpu/pair_sums_*.h) adds both products of two
// such pairs to a float32. Products of bfloat16 are exact in float32, and each is added with one rounding,
// as after widening; so results are as precise.
//
// But the instruction takes numbers below 2^-126 for 0, operands and sums. So only moderate rows are
// multiplied in this way, whose numbers are 0 or from 2^-55 to below 2^55. They are multiples of 2^-62, and
// products and their sums, rounded or not, of 2^-124: none is so small. Nor does a sum reach 2^128, as long
// as there are fewer than 2^17 features. Other rows, and so all with inf or NaN, are widened.
//
// Screening (screen.inc.h) does not meet these sums: a tile is either screened, and its candidates computed in
// float32, or computed whole.

#include <cstdint>
#include <cstring>

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Without such instructions, and for float32: there is none.
template <class T>
class PairProducts {
 public:
  PairProducts(const T*, std::int64_t, std::int64_t, std::int64_t) {}
  void take_columns(const T*, std::int64_t, int) {}
  bool take_rows(std::int64_t, int) { return false; }
  template <class Columns, class Take>
  void multiply(std::int64_t, int, float, float, const Columns&, PrefetchQueue&, const Take&) {}
};

#if defined(RELAKIT_PAIR_SUMS)

// The products of a block of rows with one tile of columns after the other.
template <>
class PairProducts<std::uint16_t> {
 public:
  PairProducts(const std::uint16_t* rows, std::int64_t stride, std::int64_t count, std::int64_t size)
      : rows_(rows),
        stride_(stride),
        size_(size),
        pairs_(round_up((size + 1) / 2, kPairStep)),
        packed_(count * pairs_),
        states_((count + kQueryTile - 1) / kQueryTile, Start::zero),
        packed_columns_(kKeyTile * pairs_),
        panels_(kKeyTile * pairs_) {}

  void take_columns(const std::uint16_t* columns, std::int64_t stride, int count) {
    columns_ = columns;
    column_stride_ = stride;
    column_count_ = count;
    column_state_ = kUnseen;
  }

  // Get ready to multiply a tile of rows from i of the block on. False if they or the columns are not
  // moderate. That depends on the tile alone, not on how the work is divided.
  bool take_rows(std::int64_t i, int rows) {
    if (column_state_ == kUnseen) {
      column_state_ = pack(columns_, column_stride_, column_count_, packed_columns_);
      if (column_state_ == kModerate) {
        transpose({packed_columns_, pairs_}, pairs_, column_count_, panels_);
      }
    }
    if (column_state_ != kModerate) return false;
    float& state = states_[i / kQueryTile];
    if (state == kUnseen) state = pack(rows_ + i * stride_, stride_, rows, packed_ + i * pairs_);
    return state == kModerate;
  }

  // factor * products + shift, as `products` (products.inc.h) computes them.
  template <class Columns, class Take>
  void multiply(std::int64_t i, int rows, float factor, float shift, const Columns& columns,
                PrefetchQueue& ahead, const Take& take) {
    products<PairSums>({packed_ + i * pairs_, pairs_}, rows, panels_, pairs_, 0.0f, columns, ahead,
                       Scaled<Take>{take, factor, shift});
  }

 private:
  static constexpr std::int64_t kPairStep = 8;  // pairs that `transpose` moves at once
  static constexpr float kUnseen = 0.0f, kModerate = 1.0f, kNotModerate = 2.0f;

  template <class Take>
  struct Scaled {
    Take take;
    float factor, shift;

    Scaled at(int row, int column) const { return {take.at(row, column), factor, shift}; }

    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      Vector scaled[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        scaled[c] = Vector::all(shift).plus_product(x[c], Vector::all(factor));
      }
      take(r, scaled);
    }
  };

  // Rows without gaps, padded with zeros. Returns whether they are moderate.
  float pack(const std::uint16_t* in, std::int64_t stride, int rows, float* out) const {
    constexpr std::uint16_t kLeast = (127 - 55) << 7, kEnd = (127 + 55) << 7;  // 2^-55 and 2^55
    std::uint16_t others = 0;
    for (int i = 0; i < rows; i++, in += stride, out += pairs_) {
      for (std::int64_t p = 0; p < size_; p++) {
        const std::uint16_t magnitude = in[p] & 0x7FFF;
        const auto above_least = static_cast<std::uint16_t>(magnitude - kLeast);  // wraps around
        others |= static_cast<std::uint16_t>(magnitude != 0 && above_least >= kEnd - kLeast);
      }
      const auto bytes = static_cast<std::size_t>(size_) * sizeof *in;
      std::memcpy(out, in, bytes);
      std::memset(reinterpret_cast<char*>(out) + bytes, 0,
                  static_cast<std::size_t>(pairs_) * sizeof(float) - bytes);
    }
    return others == 0 ? kModerate : kNotModerate;
  }

  const std::uint16_t* const rows_;
  const std::int64_t stride_, size_, pairs_;
  Buffer packed_, states_;  // of the rows, and of each tile of them
  Buffer packed_columns_, panels_;
  const std::uint16_t* columns_ = nullptr;
  std::int64_t column_stride_ = 0;
  int column_count_ = 0;
  float column_state_ = kUnseen;
};

#endif

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
