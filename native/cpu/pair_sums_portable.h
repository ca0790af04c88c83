#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/bfloat16.h"
#include "cpu/vector_portable.h"

namespace relakit::portable {
namespace {

// Sums of bfloat16 products, two at a time. Each float of a Vector carries a pair, with the first
// number in its lower half. Products are exact in float32. The product of the second numbers is
// added first, as AVX512-BF16 does. Numbers below 2^-126, which the instruction treats as 0, must
// not occur (attention/pair_products.inc.h).
struct PairSums {
  static Vector add(const Vector& sum, const Vector& x, const Vector& y) {
    Vector r;
    for (int i = 0; i < Vector::width; i++) {
      std::uint16_t a[2], b[2];
      split(x.v[i], a);
      split(y.v[i], b);
      r.v[i] = sum.v[i] + bfloat16_to_float(a[1]) * bfloat16_to_float(b[1]);
      r.v[i] = r.v[i] + bfloat16_to_float(a[0]) * bfloat16_to_float(b[0]);
    }
    return r;
  }

 private:
  static void split(float pair, std::uint16_t (&halves)[2]) {
    std::uint32_t bits;
    std::memcpy(&bits, &pair, sizeof bits);
    halves[0] = static_cast<std::uint16_t>(bits & 0xFFFF);
    halves[1] = static_cast<std::uint16_t>(bits >> 16);
  }
};

}  // namespace
}  // namespace relakit::portable
