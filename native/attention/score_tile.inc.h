// Tile: the rectified scores of a tile of queries and keys, as numbers, as bits and as lists. Part
// of kernels.inc.h.

#include <cstdint>

#include "cpu/bits.h"
#include "cpu/unroll.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// List the positions of the set bits, and pad the list. Returns its length without padding.
int list_bits(const KeyBits& bits, std::uint8_t* list) {
  int length = 0;
  for (int w = 0; w < kWords; w++) length = append_positions(bits.words[w], 64 * w, list, length);
  pad_list(list, length);
  return length;
}

// Which rectified scores are above zero, and the scores themselves: either all of them, or lists of
// those above zero.
struct Tile {
  static constexpr int kPositionsRoom = kKeyTile + 64;  // append_positions may write 64 bytes
  static constexpr int kNumbersRoom = kKeyTile + 32;    // store_chosen may write a vector; padding
  static constexpr std::uint32_t kVectorBits = (1u << kWidth) - 1;

  Buffer scores{kQueryTile * kScoreRow};
  Buffer weights{kQueryTile * kNumbersRoom};
  Buffer positions{kQueryTile * kPositionsRoom / static_cast<int>(sizeof(float))};
  KeyBits seen[kQueryTile], bits[kQueryTile];
  int lengths[kQueryTile];  // of the lists
  int rows = 0, columns = 0, total = 0;
  bool has_lists = false;

  float* score_row(int i) { return scores + i * kScoreRow; }
  float* weight_row(int i) { return weights + i * kNumbersRoom; }
  std::uint8_t* list(int i) {
    return reinterpret_cast<std::uint8_t*>(positions.data()) + i * kPositionsRoom;
  }
  // Whether more than this share of the scores is above zero.
  bool has_more_than(float share) const {
    return static_cast<float>(total) > share * static_cast<float>(rows * columns);
  }

  void start(int new_rows, int new_columns) {
    rows = new_rows;
    columns = new_columns;
    total = 0;
    has_lists = false;
  }

  void leave_empty(int i) {
    bits[i] = KeyBits{};
    lengths[i] = 0;
  }

  // Rectify the scores that are already in row i.
  void rectify_row(int i, int known) {
    bits[i] = KeyBits{};
    for (int j = 0; j < known; j += kWidth) {
      const Vector x[1] = {Vector::load(score_row(i) + j)};
      rectify(i).at(0, j)(0, x);
    }
  }

  // After the scores of row i were rectified: remove those that are not seen, unless all are, and
  // set the columns beyond the known ones to zero.
  void finish_row(int i, int known, bool all_seen) {
    float* row = score_row(i);
    for (int w = 0; w < kWords && !all_seen; w++) {
      bits[i].words[w] &= seen[i].words[w];
      for (int j = 64 * w; j < 64 * (w + 1) && j < known; j += kWidth) {
        const auto part = static_cast<std::uint32_t>(bits[i].words[w] >> (j % 64));
        Vector::load(row + j).where(part).store(row + j);
      }
    }
    for (int j = static_cast<int>(round_up(known, kWidth)); j < columns; j += kWidth) {
      Vector::all(0.0f).store(row + j);
    }
    total += bits[i].count();
  }

  // Takes scores and rectifies them.
  struct Rectify {
    float* scores;
    KeyBits* bits;
    int first;

    Rectify at(int row, int column) const {
      return {scores + row * kScoreRow + column, bits + row, first + column};
    }

    // C vectors never cross a word.
    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      static_assert(64 % kPanel == 0 && kPanel % (C * kWidth) == 0, "vectors must be in one word");
      std::uint64_t found = 0;
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        x[c].rectified().store(scores + r * kScoreRow + c * kWidth);
        found |= static_cast<std::uint64_t>(x[c].not_below_or_zero()) << (c * kWidth);
      }
      if constexpr (C * kWidth == 64) {
        bits[r].words[first / 64] = found;
      } else {
        bits[r].words[first / 64] |= found << (first % 64);
      }
    }
  };
  Rectify rectify(int i) { return {score_row(i), bits + i, 0}; }

  // The same after adding a bias, which consists of whole vectors.
  template <class B>
  struct RectifyBiased {
    Rectify rectify;
    const B* bias;
    std::int64_t stride;

    RectifyBiased at(int row, int column) const {
      return {rectify.at(row, column), bias + row * stride + column, stride};
    }

    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      Vector sum[C];
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) sum[c] = x[c] + Vector::load(bias + r * stride + c * kWidth);
      rectify(r, sum);
    }
  };
  template <class B>
  RectifyBiased<B> rectify_biased(int i, const B* bias, std::int64_t stride) {
    return {rectify(i), bias, stride};
  }

  // Stores products in a matrix, with 0 where the score is not above zero.
  struct Choose {
    float* out;
    const KeyBits* bits;
    int first;

    Choose at(int row, int column) const {
      return {out + row * kScoreRow + column, bits + row, first + column};
    }

    template <int C>
    void operator()(int r, const Vector (&x)[C]) const {
      RELAKIT_UNROLL
      for (int c = 0; c < C; c++) {
        const int j = first + c * kWidth;
        const auto part = static_cast<std::uint32_t>(bits[r].words[j / 64] >> (j % 64));
        x[c].where(part).store(out + r * kScoreRow + c * kWidth);
      }
    }
  };
  Choose choose(float* matrix) const { return {matrix, bits, 0}; }

  void list_positions() {
    for (int i = 0; i < rows; i++) lengths[i] = list_bits(bits[i], list(i));
  }

  void list_scores() {
    for (int i = 0; i < rows; i++) {
      int length = 0;
      for (int w = 0; 64 * w < columns; w++) {
        length = append_entries(bits[i].words[w], 64 * w, score_row(i) + 64 * w, list(i),
                                weight_row(i), length);
      }
      finish_list(i, length);
    }
    has_lists = true;
  }

  void finish_list(int i, int length) {
    pad_list(list(i), length);
    lengths[i] = length;
  }

  // From one number per key of row i, pick those of the listed keys.
  void list_numbers(int i, const float* numbers, float* listed) const {
    for (int j = 0; j < columns; j += kWidth) {
      const auto part = static_cast<std::uint32_t>(bits[i].words[j / 64] >> (j % 64)) & kVectorBits;
      Vector::load(numbers + j).store_chosen(part, listed);
      listed += count_bits(part);
    }
  }

  // Make a matrix of the listed numbers, with 0 elsewhere.
  void unlist(const float* numbers, float* matrix) {
    set_to_zero(matrix, sizeof(float) * static_cast<std::size_t>(rows) * kScoreRow);
    for (int i = 0; i < rows; i++) {
      const std::uint8_t* row_list = list(i);
      const float* row_numbers = numbers + i * kNumbersRoom;
      for (int t = 0; t < lengths[i]; t++) matrix[i * kScoreRow + row_list[t]] = row_numbers[t];
    }
  }
};

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
