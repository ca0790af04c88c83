#pragma once

#include <cstdint>

// Rows of scores, projected onto the simplex: sparsemax and 1.5-entmax. With x = scores (sparsemax)
// or x = scores / 2 (1.5-entmax), a row's weights are r or r * r for r = max(0, x - threshold), with
// the threshold that makes them add up to 1.

namespace relakit::simplex {

// What backward needs of a row, in units of x. The threshold is kept relative to the maximum: their
// sum would be rounded.
struct Row {
  float maximum, threshold;
};

struct Problem {
  std::int64_t rows = 0, keys = 0;
  bool is_squared = false;  // 1.5-entmax rather than sparsemax
  const float* scores = nullptr;  // [rows, keys], contiguous; -inf: no weight
};

struct ForwardResult {
  float* weights = nullptr;  // [rows, keys]; all 0 if a row has no score above -inf
  Row* rows = nullptr;       // null if not wanted
};

struct BackwardResult {
  const float* grad_weights = nullptr;  // [rows, keys]
  const Row* rows = nullptr;            // from forward
  float* grad_scores = nullptr;         // [rows, keys]
};

}  // namespace relakit::simplex
