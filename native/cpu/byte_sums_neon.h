#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "cpu/vector_neon.h"

// Included twice, with RELAKIT_ISA defined: as "neon", and as "neon_dotprod" with RELAKIT_DOTPROD,
// for processors that multiply and add bytes four at a time. Both compute the same sums.

namespace relakit::RELAKIT_ISA {
namespace {

using namespace relakit::neon;  // the vector type

// byte_sums_portable.h explains the members. These instructions multiply signed bytes, so 128 is
// subtracted from the unsigned ones first. Elsewhere the offsets do that (each is 128 times the sum
// of the weights), so here `minus` has nothing left to subtract.
struct ByteSums {
  static constexpr int inputs = 4;
  static constexpr bool adds_in_16_bits = false;  // two products are, and always fit

  int32x4_t low, high;

  struct Inputs {
    int8x16_t v;
    static Inputs load(const std::uint8_t* p) {
      std::uint32_t four;
      std::memcpy(&four, p, sizeof four);
      return {vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u))};
    }
  };
  struct Weights {
    int8x16_t low, high;
    static Weights load(const std::int8_t* p, std::int64_t) {
      return {vld1q_s8(p), vld1q_s8(p + 16)};
    }
  };
  static ByteSums zero() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
  ByteSums plus_products(const Inputs& x, const Weights& weights) const {
    return {plus_products(low, x.v, weights.low), plus_products(high, x.v, weights.high)};
  }
  Vector minus(const std::int32_t*) const { return {vcvtq_f32_s32(low), vcvtq_f32_s32(high)}; }

 private:
  static int32x4_t plus_products(int32x4_t sums, int8x16_t bytes, int8x16_t weights) {
#if defined(RELAKIT_DOTPROD)
    return vdotq_s32(sums, bytes, weights);
#else
    // Two products of numbers from -127 to 127 fit into 16 bits.
    const int16x8_t first = vmull_s8(vget_low_s8(bytes), vget_low_s8(weights));
    const int16x8_t second = vmull_high_s8(bytes, weights);
    return vpadalq_s16(sums, vpaddq_s16(first, second));
#endif
  }
};

}  // namespace
}  // namespace relakit::RELAKIT_ISA
