#pragma once

#include <cstdint>

#include "cpu/vector_portable.h"

namespace relakit::portable {
namespace {

// Sums of products of bytes, as many sums as Vector has floats. They are exact, and therefore the
// same for all instruction sets.
struct ByteSums {
  static constexpr int inputs = 4;  // inputs that are read at once: 4 or 8
  // Whether four products are added in 16 bits, so that weights must not be too large.
  static constexpr bool adds_in_16_bits = false;

  std::int32_t v[Vector::width];

  // Unsigned bytes, the same ones for all sums.
  struct Inputs {
    const std::uint8_t* p;
    static Inputs load(const std::uint8_t* p) { return {p}; }
  };
  // Four signed bytes for each sum; if there are eight inputs, the other four are `stride` bytes
  // further on.
  struct Weights {
    const std::int8_t* p;
    static Weights load(const std::int8_t* p, std::int64_t) { return {p}; }
  };
  static ByteSums zero() { return {}; }
  ByteSums plus_products(const Inputs& x, const Weights& weights) const {
    ByteSums r = *this;
    for (int i = 0; i < Vector::width; i++) {
      for (int j = 0; j < 4; j++) r.v[i] += x.p[j] * weights.p[4 * i + j];
    }
    return r;
  }
  // Each sum minus its offset, as floats.
  Vector minus(const std::int32_t* offsets) const {
    Vector r;
    for (int i = 0; i < Vector::width; i++) r.v[i] = static_cast<float>(v[i] - offsets[i]);
    return r;
  }
};

}  // namespace
}  // namespace relakit::portable
