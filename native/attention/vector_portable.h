#pragma once

#include <cstdint>
#include <cstring>

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
  static Vector load(const std::uint16_t* p) {  // bfloat16: the upper half of a float32
    Vector r;
    for (int i = 0; i < width; i++) {
      const std::uint32_t bits = static_cast<std::uint32_t>(p[i]) << 16;
      std::memcpy(&r.v[i], &bits, sizeof bits);
    }
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
  Vector times(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] * b.v[i];
    return r;
  }
  // At least 0; NaN stays NaN.
  Vector rectified() const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] <= 0.0f ? 0.0f : v[i];
    return r;
  }
  // One bit per entry: is it not <= 0? True for NaN, which must not vanish.
  std::uint32_t not_below_or_zero() const {
    std::uint32_t bits = 0;
    for (int i = 0; i < width; i++) bits |= static_cast<std::uint32_t>(!(v[i] <= 0.0f)) << i;
    return bits;
  }
  // One bit per entry: is it another number? True for NaN.
  std::uint32_t differs_from(const Vector& b) const {
    std::uint32_t bits = 0;
    for (int i = 0; i < width; i++) bits |= static_cast<std::uint32_t>(v[i] != b.v[i]) << i;
    return bits;
  }
  // Entries whose bit is set; 0 elsewhere.
  Vector where(std::uint32_t bits) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = (bits >> i & 1) != 0 ? v[i] : 0.0f;
    return r;
  }
  // The entries whose bit is set, one after the other; what follows them, up to a whole vector, is
  // overwritten with anything.
  void store_chosen(std::uint32_t bits, float* p) const {
    for (; bits != 0; bits &= bits - 1) *p++ = v[lowest_bit(bits)];
  }
  float sum() const {
    float s = 0.0f;
    for (int i = 0; i < width; i++) s += v[i];
    return s;
  }
};

// The four floats at p, each in all entries of a vector.
static inline void load_each(const float* p, Vector (&out)[4]) {
  for (int i = 0; i < 4; i++) out[i] = Vector::all(p[i]);
}

// out[i] = sum of x[i], for four vectors.
static inline void store_sums(const Vector (&x)[4], float* out) {
  for (int i = 0; i < 4; i++) out[i] = x[i].sum();
}

// out[i] = the sum of x[i] plus shift, at least 0.
static inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  for (int i = 0; i < 4; i++) {
    const float sum = x[i].sum() + shift;
    out[i] = sum <= 0.0f ? 0.0f : sum;
  }
}

// The two floats at p, each in all entries of a vector.
static inline void load_pair(const float* p, Vector& first, Vector& second) {
  first = Vector::all(p[0]);
  second = Vector::all(p[1]);
}

// out = a[0], b[0], a[1], b[1] and so on.
static inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  for (int i = 0; i < Vector::width; i++) {
    out[2 * i] = a.v[i];
    out[2 * i + 1] = b.v[i];
  }
}

// One bit per byte of 64: is it not 0?
static inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 64; i++) bits |= static_cast<std::uint64_t>(bytes[i] != 0) << i;
  return bits;
}

// out[p][j] = in[j][p] for 8 x 8 floats.
static inline void transpose_8x8(const float* in, std::int64_t in_stride, float* out,
                                 std::int64_t out_stride) {
  for (int p = 0; p < 8; p++) {
    for (int j = 0; j < 8; j++) out[p * out_stride + j] = in[j * in_stride + p];
  }
}

// Append the positions of the set bits, plus base, to a list; returns the list's new length. May
// overwrite the 64 bytes that follow.
static inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  for (; bits != 0; bits &= bits - 1) {
    list[length++] = static_cast<std::uint8_t>(base + lowest_bit(bits));
  }
  return length;
}

}  // namespace relakit::portable
