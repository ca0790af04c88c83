#pragma once

#include <cstdint>
#include <cstring>

namespace relakit {

// "static": each file has its own copy, compiled with the flags of that file.

// bfloat16 is the upper half of a float32.
static inline float bfloat16_to_float(std::uint16_t x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

// Rounds to nearest, ties to even.
static inline std::uint16_t bfloat16_from_float(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>(x == x ? rounded : 0x7FC0);  // a NaN might round to infinity
}

// For code that is written once for both types.
static inline float to_float(float x) { return x; }
static inline float to_float(std::uint16_t x) { return bfloat16_to_float(x); }
static inline void from_float(float x, float& out) { out = x; }
static inline void from_float(float x, std::uint16_t& out) { out = bfloat16_from_float(x); }

}  // namespace relakit
