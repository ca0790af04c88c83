#pragma once

#include <cstdint>

#include "cpu/vector_portable.h"

namespace relakit::portable {
namespace {

// Sums of products of bytes, as many as Vector has floats. They are exact, and so the same for
// all instruction sets.
struct ByteSums {
  std::int32_t v[Vector::width];

  // Four signed bytes for each sum.
  struct Weights {
    const std::int8_t* p;
    static Weights load(const std::int8_t* p) { return {p}; }
  };
  static ByteSums zero() { return {}; }
  // Add to each sum the products of its weights with the same four unsigned bytes.
  void add(const std::uint8_t* four, const Weights& weights) {
    for (int i = 0; i < Vector::width; i++) {
      for (int j = 0; j < 4; j++) v[i] += four[j] * weights.p[4 * i + j];
    }
  }
  // The sums minus an offset each, as floats.
  Vector minus(const std::int32_t* offsets) const {
    Vector r;
    for (int i = 0; i < Vector::width; i++) r.v[i] = static_cast<float>(v[i] - offsets[i]);
    return r;
  }
};

}  // namespace
}  // namespace relakit::portable
