#pragma once

#include <immintrin.h>

#include "cpu/vector_avx512.h"

namespace relakit::avx512 {
namespace {

// AVX512-BF16. pair_sums_portable.h explains it.
struct PairSums {
  static Vector add(const Vector& sum, const Vector& x, const Vector& y) {
    return {_mm512_dpbf16_ps(sum.v, (__m512bh)x.v, (__m512bh)y.v)};
  }
};

}  // namespace
}  // namespace relakit::avx512
