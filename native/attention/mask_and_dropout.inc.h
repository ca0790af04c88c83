// Head: which keys each query of a head sees, by mask, causality and window, and which of them
// dropout keeps. Part of kernels.inc.h.

#include <math.h>
#include <cstdint>

#include "attention/problem.h"
#include "attention/random.h"
#include "cpu/bits.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// One bit per key of a tile.
struct KeyBits {
  std::uint64_t words[kWords];

  int count() const {
    int count = 0;
    for (std::uint64_t word : words) count += count_bits(word);
    return count;
  }
};

KeyBits first_keys(std::int64_t count) {
  KeyBits keys;
  for (int w = 0; w < kWords; w++) {
    const std::int64_t n = between(0, count - 64 * w, 64);
    keys.words[w] = n == 64 ? ~0ull : (1ull << n) - 1;
  }
  return keys;
}

// How many of a tile's scores are seen; "all" also means that its rows are whole vectors.
enum class Sight { none, some, all };

// One head of one sequence of the batch, as the problem describes it.
class Head {
 public:
  Head(const Problem& problem, std::int64_t batch, std::int64_t head)
      : problem_(problem),
        batch_(batch),
        head_(head),
        threshold_(problem.threshold == nullptr ? 0.0f : problem.threshold[head]),
        keep_below_(static_cast<std::uint64_t>((1.0 - problem.dropout) * 4294967296.0)),
        keep_factor_(problem.dropout < 1.0f ? 1.0f / (1.0f - problem.dropout) : 0.0f) {}

  float threshold() const { return threshold_; }
  bool has_bias() const {
    return problem_.mask.kind == Mask::Kind::additive ||
           problem_.mask.kind == Mask::Kind::additive_bf16;
  }
  std::int64_t key_head() const { return head_ / (problem_.heads / problem_.key_heads); }

  // A query's place among all [batch, heads, queries] rows.
  std::int64_t row(std::int64_t query) const {
    return (batch_ * problem_.heads + head_) * problem_.rows_per_head + problem_.first_row + query;
  }
  // A key's place among all columns of the weights.
  std::int64_t column(std::int64_t key) const { return problem_.first_column + key; }

  // Causality and window let a query see the keys from first_key up to, but not including, key_end.
  // Both grow with the query.
  std::int64_t first_key(std::int64_t query) const {
    return between(0, query + problem_.first_diagonal, problem_.keys);
  }
  std::int64_t key_end(std::int64_t query) const {
    return between(0, query + problem_.last_diagonal + 1, problem_.keys);
  }
  // Whether causality and window let some of these queries see some of these keys.
  bool reaches(std::int64_t query, std::int64_t rows, std::int64_t key, std::int64_t columns) const {
    return key_end(query + rows - 1) > key && first_key(query) < key + columns;
  }

  // Find the keys of a tile that each query sees.
  Sight look(std::int64_t query, int rows, std::int64_t key, int columns, KeyBits* seen) const {
    const Mask& mask = problem_.mask;
    if (mask.kind == Mask::Kind::none && key_end(query) - key >= columns &&
        first_key(query + rows - 1) <= key) {  // every query sees every key
      const KeyBits all = first_keys(columns);
      for (int i = 0; i < rows; i++) seen[i] = all;
      return columns == 0 ? Sight::none : columns % kWidth == 0 ? Sight::all : Sight::some;
    }
    int total = 0;
    KeyBits shown;
    for (int i = 0; i < rows; i++) {
      seen[i] = first_keys(least(key_end(query + i) - key, columns));
      if (first_key(query + i) > key) {
        const KeyBits before = first_keys(first_key(query + i) - key);
        for (int w = 0; w < kWords; w++) seen[i].words[w] &= ~before.words[w];
      }
      if (mask.kind != Mask::Kind::none) {
        if (i == 0 || mask.row != 0) shown = shown_keys(query + i, key, columns);
        for (int w = 0; w < kWords; w++) seen[i].words[w] &= shown.words[w];
      }
      total += seen[i].count();
    }
    if (total == 0) return Sight::none;
    return total == rows * columns && columns % kWidth == 0 ? Sight::all : Sight::some;
  }

  // Fetch the mask of a tile that is needed soon. Processors do not prefetch from row to row of a
  // large mask on their own.
  void fetch_mask(std::int64_t query, std::int64_t rows, std::int64_t key, std::int64_t columns,
                  PrefetchQueue& ahead) const {
    const Mask& mask = problem_.mask;
    if (mask.kind == Mask::Kind::none || mask.row == 0 || mask.column != 1) return;
    const std::int64_t size = bytes_of(mask.kind);
    ahead.add(static_cast<const char*>(mask.data) + size * offset(query, key), size * columns,
              size * mask.row, rows);
  }

  // A query's biases from some key on, which must be of type T and contiguous.
  template <class T>
  const T* bias(std::int64_t query, std::int64_t key) const {
    return static_cast<const T*>(problem_.mask.data) + offset(query, key);
  }
  bool is_bias_contiguous() const { return problem_.mask.column == 1; }
  bool is_bias_bfloat16() const { return problem_.mask.kind == Mask::Kind::additive_bf16; }
  std::int64_t bias_row_stride() const { return problem_.mask.row; }

  void add_bias(std::int64_t query, std::int64_t key, int columns, float* scores) const {
    if (is_bias_bfloat16()) {
      add_bias_of<std::uint16_t>(offset(query, key), columns, scores);
    } else {
      add_bias_of<float>(offset(query, key), columns, scores);
    }
  }

  // The factor by which dropout multiplies the weight of a query and a key.
  float kept(std::int64_t query, std::int64_t key) const {
    return random_bits(problem_.seed, static_cast<std::uint64_t>(row(query)),
                       static_cast<std::uint64_t>(key)) < keep_below_
               ? keep_factor_
               : 0.0f;
  }

 private:
  template <class T>
  void add_bias_of(std::int64_t start, int columns, float* scores) const {
    const std::int64_t stride = problem_.mask.column;
    const T* bias = static_cast<const T*>(problem_.mask.data) + start;
    int j = 0;
    for (; stride == 1 && j + kWidth <= columns; j += kWidth) {
      (Vector::load(scores + j) + Vector::load(bias + j)).store(scores + j);
    }
    for (; j < columns; j++) scores[j] += to_float(bias[j * stride]);
  }

  KeyBits shown_keys(std::int64_t query, std::int64_t key, int columns) const {
    const Mask& mask = problem_.mask;
    KeyBits shown;
    for (int w = 0; w < kWords; w++) {
      const std::int64_t start = offset(query, key + 64 * w);
      const auto end = static_cast<int>(between(0, columns - 64 * w, 64));
      shown.words[w] = mask.column == 1 && end == 64 ? shown_word(start) : 0;
      if (mask.column == 1 && end == 64) continue;
      for (int j = 0; j < end; j++) {
        shown.words[w] |= static_cast<std::uint64_t>(shows(start + j * mask.column)) << j;
      }
    }
    return shown;
  }

  // The same for 64 contiguous keys.
  std::uint64_t shown_word(std::int64_t start) const {
    const Mask& mask = problem_.mask;
    if (mask.kind == Mask::Kind::boolean) {
      return bits_of_bytes(static_cast<const std::uint8_t*>(mask.data) + start);
    }
    return mask.kind == Mask::Kind::additive_bf16 ? finite_word<std::uint16_t>(start)
                                                  : finite_word<float>(start);
  }

  // Which of 64 biases are not -inf.
  template <class T>
  std::uint64_t finite_word(std::int64_t start) const {
    const T* bias = static_cast<const T*>(problem_.mask.data) + start;
    const Vector hidden = Vector::all(-HUGE_VALF);
    std::uint64_t word = 0;
    for (int j = 0; j < 64; j += kWidth) {
      word |= static_cast<std::uint64_t>(Vector::load(bias + j).differs_from(hidden)) << j;
    }
    return word;
  }

  // Whether the mask shows a key. -inf hides it whatever its score, NaN included.
  bool shows(std::int64_t position) const {
    const Mask& mask = problem_.mask;
    if (mask.kind == Mask::Kind::boolean) {
      return static_cast<const std::uint8_t*>(mask.data)[position] != 0;
    }
    if (mask.kind == Mask::Kind::additive_bf16) {
      return to_float(static_cast<const std::uint16_t*>(mask.data)[position]) != -HUGE_VALF;
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

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
