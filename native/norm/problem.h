#pragma once

#include <cstdint>

// One call of RMSNorm, gated or not, as the kernels see it. Sizes and strides are in elements.
//
// A row of features consists of `pieces` pieces of `size` contiguous features each. The output of
// attention, [batch, heads, queries, features], has one piece per head, so no transposed copy is
// needed.

namespace relakit::norm {

struct Strides {
  std::int64_t outer = 0, row = 0, piece = 0;
};

struct Problem {
  std::int64_t outer = 0, rows = 0, pieces = 0, size = 0;  // outer * rows rows in all
  bool is_bfloat16 = false;  // input, output and their gradients; arithmetic is in float32
  const void* input = nullptr;
  Strides strides;
  const float* gain = nullptr;  // [features]
  const float* gate = nullptr;  // [features]; null: no gate
  float eps = 0.0f;
};

// "static": each file has its own copy, compiled with the flags of that file.
static inline std::int64_t row_count(const Problem& p) { return p.outer * p.rows; }
static inline std::int64_t features_of(const Problem& p) { return p.pieces * p.size; }

struct ForwardResult {
  void* output = nullptr;        // [rows, features], contiguous
  float* inverse_rms = nullptr;  // [rows]; null if not wanted
};

struct BackwardResult {
  const void* grad_output = nullptr;  // features contiguous
  Strides grad_output_strides;
  const float* inverse_rms = nullptr;  // [rows], from forward
  void* grad_input = nullptr;
  Strides grad_input_strides;
};

// Sums over one block of rows; no other thread writes them.
struct BlockSums {
  float* gain = nullptr;  // [features]
  float* gate = nullptr;  // [features]; null: no gate
};

}  // namespace relakit::norm
