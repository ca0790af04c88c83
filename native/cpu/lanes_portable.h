#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/bfloat16.h"

namespace relakit::lanes::portable {
namespace {

// Eight floats in plain C++, which compilers turn into whatever vectors the target has.
struct Lanes {
  static constexpr int width = 8;
  float v[width];

  static Lanes all(float x) {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = x;
    return r;
  }
  static Lanes load(const float* p) {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = p[i];
    return r;
  }
  static Lanes load(const std::uint16_t* p) {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = bfloat16_to_float(p[i]);
    return r;
  }
  void store(float* p) const {
    for (int i = 0; i < width; i++) p[i] = v[i];
  }
  void store(std::uint16_t* p) const {
    for (int i = 0; i < width; i++) p[i] = bfloat16_from_float(v[i]);
  }
  // The first `count` entries; 0 behind them.
  template <class T>
  static Lanes load(const T* p, int count) {
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

  Lanes operator+(const Lanes& b) const {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] + b.v[i];
    return r;
  }
  Lanes operator-(const Lanes& b) const {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] - b.v[i];
    return r;
  }
  Lanes operator*(const Lanes& b) const {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] * b.v[i];
    return r;
  }
  Lanes operator/(const Lanes& b) const {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] / b.v[i];
    return r;
  }
  // *this * b + c
  Lanes times_plus(const Lanes& b, const Lanes& c) const {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] * b.v[i] + c.v[i];
    return r;
  }
  // The larger of each two; the second where one of them is NaN.
  Lanes max(const Lanes& b) const {
    Lanes r;
    for (int i = 0; i < width; i++) r.v[i] = v[i] > b.v[i] ? v[i] : b.v[i];
    return r;
  }
  // Between two numbers; NaN stays NaN.
  Lanes clamped(float low, float high) const {
    Lanes r;
    for (int i = 0; i < width; i++) {
      const float x = low > v[i] ? low : v[i];
      r.v[i] = high < x ? high : x;
    }
    return r;
  }
  // The number whose bits are (bits << count) + added.
  Lanes with_bits_shifted(int count, std::uint32_t added) const {
    Lanes r;
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
};

}  // namespace
}  // namespace relakit::lanes::portable
