#pragma once

#include <cstdint>

// Where one way of computing attention becomes faster than another. That depends on how many numbers a
// processor loads for each that it multiplies, so each instruction set has its own.
// `relakit bench attention --tune` prints what is best on a processor.

namespace relakit::attention {

struct Thresholds {
  float dense_forward;   // the share of non-zeros in a tile above which sums of values are dense products
  float dense_backward;  // the same for gradients
  float most_candidates;         // the share of scores up to which computing those that screening lets
                                 // through is faster than computing all
  std::int64_t least_to_screen;  // queries and keys from which on they share the cost of rounding
};

constexpr Thresholds kAvx2Thresholds{0.55f, 0.6f, 0.3f, 256};
// Measured on an Intel Xeon (Ice Lake).
constexpr Thresholds kAvx512Thresholds{0.3f, 0.37f, 0.2f, 256};
constexpr Thresholds kAvx512ThresholdsOfAmd{0.7f, 0.68f, 0.5f, 256};
constexpr Thresholds kOtherThresholds{0.3f, 0.37f, 0.2f, 256};

}  // namespace relakit::attention
