// PairProducts: dense products of bfloat16 rows, two numbers at a time, where the processor has
// instructions for that. Part of kernels.inc.h.
//
// Two neighbours in a row are moved like one float, and PairSums (cpu/pair_sums_*.h) adds both
// products of two such pairs to a float32. Products of bfloat16 are exact in float32, and each is
// added with one rounding, as it would be after widening, so results are as precise.
//
// However, the instruction treats operands and sums below 2^-126 as 0. So only moderate rows are
// multiplied in this way: rows whose numbers are 0 or from 2^-55 to below 2^55. Such numbers are
// multiples of 2^-62, and products and their sums, rounded or not, are multiples of 2^-124, so none
// is that small. Nor does a sum reach 2^128, as long as there are fewer than 2^17 features. Other
// rows, including all with inf or NaN, are widened.
//
// Screening (screen.inc.h) never uses these sums: a tile is either screened and its candidates
// computed in float32, or computed as a whole.

#include <cstdint>
#include <cstring>

namespace relakit::attention::RELAKIT_ISA {
namespace {

// For float32, and without such instructions, there are no pair products.
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

  // Get ready to multiply a tile of rows from row i of the block on. False if the rows or the
  // columns are not moderate. That depends on the tile alone, not on how the work is divided.
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

  // Compute factor * products + shift, with the products of `products` (products.inc.h).
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

  // Copy rows without gaps, padded with zeros. Returns whether they are moderate.
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
  Buffer packed_, states_;  // rows, and the state of each tile of them
  Buffer packed_columns_, panels_;
  const std::uint16_t* columns_ = nullptr;
  std::int64_t column_stride_ = 0;
  int column_count_ = 0;
  float column_state_ = kUnseen;
};

#endif

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
