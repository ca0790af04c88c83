#pragma once

#include <cstdint>

// Where one way of computing attention becomes faster than another. That depends on how many numbers a
// processor loads for each that it multiplies, so each instruction set has its own.
// `relakit bench attention --tune` prints what is best on a processor.

namespace relakit::attention {

struct Thresholds {
  // The share of non-zeros in a tile above which dense products are faster than sums along lists: for the
  // output, and for gradients.
  float dense_forward, dense_backward;
  // The share of scores up to which computing those that screening lets through is faster than computing all.
  float most_candidates;
  // Queries and keys from which on they share the cost of rounding.
  std::int64_t least_to_screen;
};

// By the type of the inputs: dense products take less time where the processor multiplies bfloat16.
struct ThresholdsByType {
  Thresholds f32, bf16;
};

// Measured on AMD Zen 4, with AVX2 alone.
constexpr Thresholds kAvx2Thresholds{0.55f, 0.6f, 0.3f, 256};
// Measured on Intel Ice Lake, which multiplies nearly twice as many numbers as it loads.
constexpr Thresholds kAvx512Thresholds{0.3f, 0.37f, 0.2f, 256};
// Measured on AMD Zen 4, which multiplies as many as it loads.
constexpr Thresholds kAvx512ThresholdsOfAmd{0.7f, 0.68f, 0.5f, 256};
// The same with AVX512-BF16, for bfloat16.
constexpr Thresholds kAvx512Bf16ThresholdsOfAmd{0.7f, 0.55f, 0.17f, 256};
// Not measured; there is no screening.
constexpr Thresholds kOtherThresholds{0.3f, 0.37f, 0.2f, 256};

}  // namespace relakit::attention
