#pragma once

#include <cstdint>

// Rows of scores, projected onto the simplex: sparsemax and 1.5-entmax. With x = scores (sparsemax)
// or x = scores / 2 (1.5-entmax), a row's weights are r or r * r for r = max(0, x - threshold), with
// the threshold that makes them add up to 1.

namespace relakit::simplex {

// All tensors are [rows, keys], contiguous.
struct Problem {
  std::int64_t rows = 0, keys = 0;
  bool is_squared = false;  // 1.5-entmax rather than sparsemax
};

struct Forward {
  const float* scores = nullptr;  // -inf: no weight
  float* weights = nullptr;       // all 0 if a row has no score above -inf
};

struct Backward {
  const float* weights = nullptr;
  const float* grad_weights = nullptr;
  float* grad_scores = nullptr;
};

}  // namespace relakit::simplex
