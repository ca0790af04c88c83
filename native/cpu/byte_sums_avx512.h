#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/vector_avx512.h"

namespace relakit::avx512 {
namespace {

// Adds to each of 16 sums the products of four unsigned and four signed bytes.
inline __m512i plus_byte_products(__m512i sums, __m512i bytes, __m512i signed_bytes) {
#if defined(__GNUC__) && !defined(__clang__)
  // GCC 12 copies the sums before and after the intrinsic.
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(bytes), "v"(signed_bytes));
  return sums;
#else
  return _mm512_dpbusd_epi32(sums, bytes, signed_bytes);
#endif
}

// byte_sums_portable.h explains the members.
struct ByteSums {
  static constexpr int inputs = 4;
  static constexpr bool adds_in_16_bits = false;

  __m512i v;

  struct Inputs {
    __m512i v;
    static Inputs load(const std::uint8_t* p) {
      std::int32_t four;
      std::memcpy(&four, p, sizeof four);
      return {_mm512_set1_epi32(four)};
    }
  };
  struct Weights {
    __m512i v;
    static Weights load(const std::int8_t* p, std::int64_t) { return {_mm512_loadu_si512(p)}; }
  };
  static ByteSums zero() { return {_mm512_setzero_si512()}; }
  ByteSums plus_products(const Inputs& x, const Weights& weights) const {
    return {plus_byte_products(v, x.v, weights.v)};
  }
  Vector minus(const std::int32_t* offsets) const {
    return {_mm512_cvtepi32_ps(_mm512_sub_epi32(v, _mm512_loadu_si512(offsets)))};
  }
};

}  // namespace
}  // namespace relakit::avx512
