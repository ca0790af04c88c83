#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/vector_avx2.h"

// Included twice, with RELAKIT_ISA defined: as "avx2", and as "avx2_vnni" with RELAKIT_VNNI, for
// processors that multiply and add bytes four at a time (AVX-VNNI) but have no AVX-512.

#if defined(RELAKIT_EVEX)
#define RELAKIT_ENCODING "%{evex%}"
#else
#define RELAKIT_ENCODING "%{vex%}"
#endif

namespace relakit::RELAKIT_ISA {
namespace {

using namespace relakit::avx2;  // the vector type

// byte_sums_portable.h explains the members.
struct ByteSums {
#if defined(RELAKIT_VNNI)
  static constexpr int inputs = 4;
  static constexpr bool adds_in_16_bits = false;
#else
  static constexpr int inputs = 8;
  static constexpr bool adds_in_16_bits = true;
#endif

  __m256i v;

  struct Inputs {
    __m256i first, second;
    static Inputs load(const std::uint8_t* p) {
      return {four(p), inputs == 8 ? four(p + 4) : _mm256_setzero_si256()};
    }
  };
  struct Weights {
    __m256i first, second;
    static Weights load(const std::int8_t* p, std::int64_t stride) {
      return {bytes(p), inputs == 8 ? bytes(p + stride) : _mm256_setzero_si256()};
    }
  };
  static ByteSums zero() { return {_mm256_setzero_si256()}; }
  ByteSums plus_products(const Inputs& x, const Weights& weights) const {
#if !defined(RELAKIT_VNNI)
    // Products saturate and sums wrap around, but weights are so small that neither happens.
    const __m256i sums = _mm256_add_epi16(_mm256_maddubs_epi16(x.first, weights.first),
                                          _mm256_maddubs_epi16(x.second, weights.second));
    return {_mm256_add_epi32(v, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)))};
#elif defined(__GNUC__) && !defined(__clang__)
    // GCC 12 copies the sums before and after the intrinsic.
    __m256i sums = v;
    asm(RELAKIT_ENCODING " vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(x.first), "x"(weights.first));
    return {sums};
#else
    return {_mm256_dpbusd_avx_epi32(v, x.first, weights.first)};
#endif
  }
  Vector minus(const std::int32_t* offsets) const {
    const __m256i o = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offsets));
    return {_mm256_cvtepi32_ps(_mm256_sub_epi32(v, o))};
  }

 private:
  static __m256i four(const std::uint8_t* p) {
    std::int32_t x;
    std::memcpy(&x, p, sizeof x);
    return _mm256_set1_epi32(x);
  }
  static __m256i bytes(const std::int8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
};

}  // namespace
}  // namespace relakit::RELAKIT_ISA
