#pragma once

#include <cstdint>
#include <cstring>

namespace relakit {

// bfloat16 is the upper half of a float32. "static", as in bits.h.

static inline float to_float(float x) { return x; }
static inline float to_float(std::uint16_t x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

static inline void from_float(float x, float& out) { out = x; }
static inline void from_float(float x, std::uint16_t& out) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (!(x == x)) {
    out = 0x7FC0;
    return;
  }
  bits += 0x7FFF + ((bits >> 16) & 1);  // to nearest, ties to even
  out = static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace relakit
