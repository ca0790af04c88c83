#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

#include "cpu/bfloat16.h"
#include "cpu/bits.h"

// The vector type that all kernels are written with: here in plain C++, and with the same members
// in vector_avx2.h, vector_avx512.h and vector_neon.h. The comments here apply to all of them.
//
// Everything is local to the including file, which is compiled for one instruction set: the linker
// must not share a copy with files that are compiled for another instruction set.

namespace relakit::portable {
namespace {

// Eight floats, which compilers turn into whatever vectors the target has.
struct Vector {
  static constexpr int width = 8;
  static constexpr int registers = 1;  // registers it takes, unless the compiler needs more
  float v[width];

  static Vector all(float x) {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = x;
    return r;
  }
  static Vector load(const float* p) {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = p[i];
    return r;
  }
  static Vector load(const std::uint16_t* p) {  // bfloat16
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = bfloat16_to_float(p[i]);
    return r;
  }
  void store(float* p) const {
    for (int i = 0; i < width; i++) p[i] = v[i];
  }
  void store(std::uint16_t* p) const {
    for (int i = 0; i < width; i++) p[i] = bfloat16_from_float(v[i]);
  }
  // The first `count` entries, followed by zeros.
  template <class T>
  static Vector load(const T* p, int count) {
    T part[width] = {};
    for (int i = 0; i < count; i++) part[i] = p[i];
    return load(part);
  }
  template <class T>
  void store(T* p, int count) const {
    T part[width];
    store(part);
    for (int i = 0; i < count; i++) p[i] = part[i];
  }

  Vector operator+(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] + b.v[i];
    return r;
  }
  Vector operator-(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] - b.v[i];
    return r;
  }
  Vector operator*(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] * b.v[i];
    return r;
  }
  Vector operator/(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] / b.v[i];
    return r;
  }
  // *this + a * b; rounded only once if the instruction set can do that.
  Vector plus_product(const Vector& a, const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = a.v[i] * b.v[i] + v[i];
    return r;
  }
  // The larger of each pair; the second if either of them is NaN.
  Vector max(const Vector& b) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] > b.v[i] ? v[i] : b.v[i];
    return r;
  }
  // NaN stays NaN.
  Vector clamped(float low, float high) const {
    Vector r;
    for (int i = 0; i < width; i++) {
      const float x = low > v[i] ? low : v[i];
      r.v[i] = high < x ? high : x;
    }
    return r;
  }
  // At least 0; NaN stays NaN.
  Vector rectified() const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] <= 0.0f ? 0.0f : v[i];
    return r;
  }
  Vector root() const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = sqrtf(v[i]);
    return r;
  }
  // The number whose bits are (bits << count) + added.
  Vector with_bits_shifted(int count, std::uint32_t added) const {
    Vector r;
    for (int i = 0; i < width; i++) {
      std::uint32_t bits;
      std::memcpy(&bits, &v[i], sizeof bits);
      bits = (bits << count) + added;
      std::memcpy(&r.v[i], &bits, sizeof bits);
    }
    return r;
  }
  float sum() const {
    float s = 0.0f;
    for (int i = 0; i < width; i++) s += v[i];
    return s;
  }

  // One bit per entry: is it not <= 0? True for NaN, which must not vanish.
  std::uint32_t not_below_or_zero() const {
    std::uint32_t bits = 0;
    for (int i = 0; i < width; i++) bits |= static_cast<std::uint32_t>(!(v[i] <= 0.0f)) << i;
    return bits;
  }
  // One bit per entry: do they differ? True for NaN.
  std::uint32_t differs_from(const Vector& b) const {
    std::uint32_t bits = 0;
    for (int i = 0; i < width; i++) bits |= static_cast<std::uint32_t>(v[i] != b.v[i]) << i;
    return bits;
  }
  // Keeps the entries whose bit is set; the others become 0.
  Vector where(std::uint32_t bits) const {
    Vector r;
    for (int i = 0; i < width; i++) r.v[i] = (bits >> i & 1) != 0 ? v[i] : 0.0f;
    return r;
  }
  // Stores the entries whose bit is set, side by side. The memory after them, up to a whole vector,
  // may be overwritten with anything.
  void store_chosen(std::uint32_t bits, float* p) const {
    for (; bits != 0; bits &= bits - 1) *p++ = v[lowest_bit(bits)];
  }
};

// Four vectors, each filled with one of the four floats at p.
inline void load_each(const float* p, Vector (&out)[4]) {
  for (int i = 0; i < 4; i++) out[i] = Vector::all(p[i]);
}

// The same for two vectors.
inline void load_pair(const float* p, Vector& first, Vector& second) {
  first = Vector::all(p[0]);
  second = Vector::all(p[1]);
}

// out = a[0], b[0], a[1], b[1] and so on.
inline void store_pairs(const Vector& a, const Vector& b, float* out) {
  for (int i = 0; i < Vector::width; i++) {
    out[2 * i] = a.v[i];
    out[2 * i + 1] = b.v[i];
  }
}

// out[i] = the sum of x[i].
inline void store_sums(const Vector (&x)[4], float* out) {
  for (int i = 0; i < 4; i++) out[i] = x[i].sum();
}

// out[i] = the sum of x[i] plus shift, at least 0.
inline void store_rectified_sums(const Vector (&x)[4], float shift, float* out) {
  for (int i = 0; i < 4; i++) {
    const float sum = x[i].sum() + shift;
    out[i] = sum <= 0.0f ? 0.0f : sum;
  }
}

// out[p][j] = in[j][p] for 8 x 8 floats.
inline void transpose_8x8(const float* in, std::int64_t in_stride, float* out,
                          std::int64_t out_stride) {
  for (int p = 0; p < 8; p++) {
    for (int j = 0; j < 8; j++) out[p * out_stride + j] = in[j * in_stride + p];
  }
}

}  // namespace
}  // namespace relakit::portable
