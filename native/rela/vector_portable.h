#pragma once

#include <cstdint>

#include "bits.h"

namespace relakit::portable {

// Eight floats in plain C++, which compilers turn into whatever vectors the target has.
struct Vector {
  static constexpr int width = 8;
  static constexpr int rows = 4, columns = 1;  // score tile, in vectors
  static constexpr int sum_rows = 1;             // dense sums: 1 row of 4 vectors
  float v[width];

  static Vector load(const float* p) {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = p[i];
    return r;
  }
  static Vector all(float x) {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = x;
    return r;
  }
  void store(float* p) const {
    for (int i = 0; i < width; i++) p[i] = v[i];
  }
  // a * b + *this
  Vector plus_product(const Vector& a, const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = a.v[i] * b.v[i] + v[i];
    return r;
  }
  Vector plus(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] + b.v[i];
    return r;
  }
  // One bit per entry: is it not <= 0? True for NaN, which must not vanish.
  std::uint32_t not_below_or_zero() const {
    std::uint32_t bits = 0;
    for (int i = 0; i < width; i++) bits |= static_cast<std::uint32_t>(!(v[i] <= 0.0f)) << i;
    return bits;
  }
  // Entries whose bit is set; 0 elsewhere.
  Vector where(std::uint32_t bits) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = (bits >> i & 1) != 0 ? v[i] : 0.0f;
    return r;
  }
  float sum() const {
    float s = 0.0f;
    for (int i = 0; i < width; i++) s += v[i];
    return s;
  }
};

// out[p][j] = in[j][p] for 8 x 8 floats.
static inline void transpose_8x8(const float* in, std::int64_t in_stride, float* out,
                                 std::int64_t out_stride) {
  for (int p = 0; p < 8; p++) {
    for (int j = 0; j < 8; j++) out[p * out_stride + j] = in[j * in_stride + p];
  }
}

// Append the positions of the set bits, plus base, to a list; returns the list's new length.
static inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  return append_positions_one_by_one(bits, base, list, length);
}

}  // namespace relakit::portable
