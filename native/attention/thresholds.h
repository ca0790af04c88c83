#pragma once

#include <cstdint>

// The points where one way of computing attention becomes faster than another. They depend on how
// many numbers a processor loads for each one that it multiplies, and on its caches, so each
// instruction set has its own, and some makers do. `relakit bench attention --tune` prints the best
// values for your processor.

namespace relakit::attention {

struct Thresholds {
  // The share of non-zeros in a tile above which dense products are faster than sums along lists,
  // for the output and for the gradients.
  float dense_forward, dense_backward;
  // While screening lets through at most this share of the scores, computing only those is faster
  // than computing all.
  float most_candidates;
  // Scores are screened from this many queries and keys on, which then share the cost of rounding.
  std::int64_t least_to_screen;
  // With few queries: while at most this share of the weights is not zero, their values are fetched
  // ahead of time. With more, nearly all values are read, and the processor fetches them itself.
  float most_to_fetch;
};

// One set per input type: dense products take less time where the processor multiplies bfloat16.
struct ThresholdsByType {
  Thresholds f32, bf16;
};

// Measured on Intel Cascade Lake, with AVX2 alone. It stands for processors without AVX-512, of
// which none but AMD's were measured.
constexpr Thresholds kAvx2Thresholds{0.55f, 0.47f, 0.12f, 512, 0.0f};
// Measured on AMD Zen 4, with AVX2 alone.
constexpr Thresholds kAvx2ThresholdsOfAmd{0.55f, 0.6f, 0.3f, 256, 0.6f};
// Measured on Intel Ice Lake, which multiplies nearly twice as many numbers as it loads; the last
// one on Cascade Lake, where the others are about the same.
constexpr Thresholds kAvx512Thresholds{0.3f, 0.37f, 0.2f, 256, 0.0f};
// Measured on AMD Zen 4, which multiplies as many as it loads.
constexpr Thresholds kAvx512ThresholdsOfAmd{0.7f, 0.68f, 0.5f, 256, 0.6f};
// The same processor with AVX512-BF16, for bfloat16.
constexpr Thresholds kAvx512Bf16ThresholdsOfAmd{0.7f, 0.55f, 0.17f, 256, 0.6f};
// Not measured. These instruction sets have no screening.
constexpr Thresholds kOtherThresholds{0.3f, 0.37f, 0.2f, 256, 0.6f};

}  // namespace relakit::attention
