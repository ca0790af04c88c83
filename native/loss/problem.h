#pragma once

#include <cstdint>

// Label-smoothed cross-entropy of rows of logits: for a row with the target t, of V logits,
//   (1 - s) (-log p_t) + s mean_j(-log p_j),   p = softmax(logits),   s the smoothing.

namespace relakit::loss {

struct Losses {
  float smoothed, negative_log_likelihood;
};

struct Problem {
  std::int64_t rows = 0, vocabulary = 0;
  bool is_bfloat16 = false;  // logits and gradient; arithmetic is in float32
  const void* logits = nullptr;            // [rows, vocabulary], contiguous
  const std::int64_t* targets = nullptr;   // [rows], each from 0 to vocabulary - 1
  const float* shares = nullptr;           // [rows], factors on the gradients; null: 1
  float smoothing = 0.0f;
};

struct Result {
  Losses* losses = nullptr;  // [rows]
  void* gradient = nullptr;  // [rows, vocabulary], may be the logits; null if not wanted
};

}  // namespace relakit::loss
