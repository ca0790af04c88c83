// Scores of a tile, rectified and masked, with lists of what is not zero. Part of kernels.inc.h.

#include <cmath>
#include <cstdint>

#include "rela/bits.h"
#include "rela/problem.h"
#include "rela/random.h"

namespace relakit::RELAKIT_ISA {
namespace {

// Shares of non-zeros in a tile above which dense work is the faster: for sums of rows, where every
// non-zero costs a few loads, and for dot products, where it costs a reduction of a vector too.
constexpr float kDenseSums = 0.45f, kDenseDots = 0.3f;

// Which bits of a row of a tile stand for keys that the query may see.
struct Visible {
  std::uint64_t words[kWords];
};

Visible first_keys(std::int64_t count) {
  Visible visible;
  for (int w = 0; w < kWords; w++) {
    const std::int64_t n = between(0, count - 64 * w, 64);
    visible.words[w] = n == 64 ? ~0ull : (1ull << n) - 1;
  }
  return visible;
}

// The scores of a tile of queries and keys, rectified, with a list of the non-zeros of each row.
struct Tile {
  Buffer scores{kQueryTile * kKeyTile};
  std::uint8_t lists[kQueryTile * kListRoom];
  int lengths[kQueryTile];
  std::uint64_t bits[kQueryTile][kWords];

  float* row(int i) { return scores + i * kKeyTile; }
  std::uint8_t* list(int i) { return lists + i * kListRoom; }
};

// Reads a Problem for one pair of batch and head.
class Head {
 public:
  Head(const Problem& problem, std::int64_t batch, std::int64_t head)
      : problem_(problem),
        batch_(batch),
        head_(head),
        threshold_(problem.threshold[head]),
        keep_below_(static_cast<std::uint64_t>((1.0 - problem.dropout) * 4294967296.0)),
        keep_factor_(problem.dropout < 1.0f ? 1.0f / (1.0f - problem.dropout) : 0.0f) {}

  float threshold() const { return threshold_; }

  // Number of keys from 0 on that a query may see by causality.
  std::int64_t causal_end(std::int64_t query) const {
    return problem_.causal ? least(query + 1, problem_.keys) : problem_.keys;
  }

  Visible visible(std::int64_t query, std::int64_t key, int keys) const {
    Visible visible = first_keys(least(causal_end(query) - key, keys));
    const Mask& mask = problem_.mask;
    if (mask.kind == Mask::Kind::none) return visible;
    const std::int64_t start = offset(query, key);
    for (int w = 0; w < kWords; w++) {
      std::uint64_t word = 0;
      const auto end = static_cast<int>(between(0, keys - 64 * w, 64));
      for (int j = 0; j < end; j++) {
        word |= static_cast<std::uint64_t>(shows(start + (64 * w + j) * mask.column)) << j;
      }
      visible.words[w] &= word;
    }
    return visible;
  }

  void add_bias(std::int64_t query, std::int64_t key, int keys, float* scores) const {
    const Mask& mask = problem_.mask;
    if (mask.kind != Mask::Kind::additive) return;
    const auto* bias = static_cast<const float*>(mask.data) + offset(query, key);
    for (int j = 0; j < keys; j++) scores[j] += bias[j * mask.column];
  }

  // What dropout multiplies the weight of a query and a key with.
  float kept(std::int64_t query, std::int64_t key) const {
    const auto row = static_cast<std::uint64_t>((batch_ * problem_.heads + head_) *
                                                    problem_.queries + query);
    return random_bits(problem_.seed, row, static_cast<std::uint64_t>(key)) < keep_below_
               ? keep_factor_
               : 0.0f;
  }

 private:
  // Whether the mask lets a key be seen. -inf hides it whatever its score, NaN included.
  bool shows(std::int64_t position) const {
    const Mask& mask = problem_.mask;
    if (mask.kind == Mask::Kind::boolean) {
      return static_cast<const std::uint8_t*>(mask.data)[position] != 0;
    }
    return static_cast<const float*>(mask.data)[position] != -HUGE_VALF;
  }

  std::int64_t offset(std::int64_t query, std::int64_t key) const {
    const Mask& mask = problem_.mask;
    return batch_ * mask.batch + head_ * mask.head + query * mask.row + key * mask.column;
  }

  const Problem& problem_;
  std::int64_t batch_, head_;
  float threshold_;
  std::uint64_t keep_below_;
  float keep_factor_;
};

// Scores of packed queries and transposed keys; rectified, listed. Returns the number of non-zeros.
int fill_tile(const Head& head, const float* queries, std::int64_t padded, const float* keys_t,
              std::int64_t dim, std::int64_t query, int rows, std::int64_t key, int columns,
              Tile& tile) {
  products(queries, padded, keys_t, dim, -head.threshold(), rows, columns, tile.scores);
  int total = 0;
  for (int i = 0; i < rows; i++) {
    float* scores = tile.row(i);
    head.add_bias(query + i, key, columns, scores);
    const Visible visible = head.visible(query + i, key, columns);
    int length = 0;
    for (int w = 0; w < kWords && 64 * w < columns; w++) {
      std::uint64_t bits = 0;
      for (int v = 0; v < 64 / kWidth && 64 * w + v * kWidth < columns; v++) {
        const Vector x = Vector::load(scores + 64 * w + v * kWidth);
        bits |= static_cast<std::uint64_t>(x.not_below_or_zero()) << (v * kWidth);
      }
      bits &= visible.words[w];
      tile.bits[i][w] = bits;
      length = append_positions(bits, 64 * w, tile.list(i), length);
    }
    for (int w = (columns + 63) / 64; w < kWords; w++) tile.bits[i][w] = 0;
    tile.lengths[i] = length;
    total += length;
  }
  return total;
}

bool is_dense(int nonzeros, int rows, int columns, float share) {
  return static_cast<float>(nonzeros) > share * static_cast<float>(rows * columns);
}

// Set to 0 what is not in the lists.
void clear_unlisted(const Tile& tile, int rows, int columns, float* matrix) {
  for (int i = 0; i < rows; i++, matrix += kKeyTile) {
    for (int j = 0; j < columns; j += kWidth) {
      const auto bits = static_cast<std::uint32_t>(tile.bits[i][j / 64] >> (j % 64));
      Vector::load(matrix + j).where(bits).store(matrix + j);
    }
  }
}

}  // namespace
}  // namespace relakit::RELAKIT_ISA
