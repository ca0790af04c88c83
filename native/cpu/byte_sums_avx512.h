#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "cpu/vector_avx512.h"

namespace relakit::avx512 {
namespace {

// byte_sums_portable.h explains the members.
struct ByteSums {
  __m512i v;

  struct Weights {
    __m512i v;
    static Weights load(const std::int8_t* p) { return {_mm512_loadu_si512(p)}; }
  };
  static ByteSums zero() { return {_mm512_setzero_si512()}; }
  void add(const std::uint8_t* four, const Weights& weights) {
    std::int32_t x;
    std::memcpy(&x, four, sizeof x);
    v = _mm512_dpbusd_epi32(v, _mm512_set1_epi32(x), weights.v);
  }
  Vector minus(const std::int32_t* offsets) const {
    return {_mm512_cvtepi32_ps(_mm512_sub_epi32(v, _mm512_loadu_si512(offsets)))};
  }
};

}  // namespace
}  // namespace relakit::avx512
