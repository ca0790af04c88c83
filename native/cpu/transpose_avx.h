#pragma once

#include <immintrin.h>

#include <cstdint>

namespace relakit {

// out[p][j] = in[j][p] for 8 x 8 floats, in registers.
static inline void transpose_8x8(const float* in, std::int64_t in_stride, float* out,
                                 std::int64_t out_stride) {
  __m256 r[8], pairs[8], quads[8];
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(in + i * in_stride);
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(out + i * out_stride, _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20));
    _mm256_storeu_ps(out + (i + 4) * out_stride,
                     _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31));
  }
}

}  // namespace relakit
