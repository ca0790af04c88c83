#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "check.h"

// One call of attention as it is checked: its numbers, how they lie in memory, and all options.

namespace relakit::check {

using attention::DType;
using attention::Mask;

// [batch, heads, rows, size], as plain numbers and in memory.
class Heads {
 public:
  enum class Layout { heads_apart, heads_inside, with_gaps };

  Heads(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t size, DType dtype,
        Layout layout);
  // Numbers on a grid that float32 and bfloat16 hold exactly.
  void fill(Random& random);
  void set(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t p, float x);
  double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t p) const;
  std::vector<double> all() const;

  attention::View view() const;
  attention::Target target();
  // What lies between the rows is as it was made.
  bool are_gaps_untouched() const;

  std::int64_t batch, heads, rows, size;

 private:
  std::size_t place(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t p) const;
  bool is_bfloat16() const { return dtype_ == DType::bf16; }

  DType dtype_;
  std::int64_t batch_stride_, head_stride_, row_stride_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
};

struct AttentionCase {
  std::int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, dim = 1, value_dim = 1;
  DType dtype = DType::f32;
  Heads::Layout layout = Heads::Layout::heads_apart;
  Mask::Kind mask = Mask::Kind::none;
  bool has_mask_per_query = true, is_mask_contiguous = true;
  std::int64_t first_diagonal = -attention::kUnlimited, last_diagonal = attention::kUnlimited;
  float scale = 1.0f;
  float threshold = 0.0f;  // of the first head; each other has a little more
  int power = 1;
  float dropout = 0.0f;

  std::string name() const;
};

// A case with its numbers.
class AttentionInputs {
 public:
  AttentionInputs(const AttentionCase& wanted, std::uint64_t seed);

  attention::Problem problem() const;
  // Whether the mask shows a key, and what it adds to the score.
  bool shows(std::int64_t b, std::int64_t i, std::int64_t j) const;
  double bias(std::int64_t b, std::int64_t i, std::int64_t j) const;

  const AttentionCase call;
  Heads query, key, value, grad_output;
  std::vector<float> thresholds;
  static constexpr std::uint64_t kSeed = 12345;

 private:
  std::size_t mask_place(std::int64_t b, std::int64_t i, std::int64_t j) const;

  std::int64_t mask_step_;  // from one key to the next
  std::vector<float> bias_;
  std::vector<std::uint16_t> bias_halves_;
  std::vector<std::uint8_t> shown_;
};

// What the formulas give, in float64.
struct AttentionReference {
  explicit AttentionReference(const AttentionInputs& inputs);

  std::vector<double> output, weights, row_sums, row_counts;
  std::vector<double> grad_query, grad_key, grad_value, grad_rows;
  std::vector<bool> above;  // [batch, heads, queries, keys]: whether a score is above its threshold
};

}  // namespace relakit::check
