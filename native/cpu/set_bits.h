#pragma once

#include <cstdint>

namespace relakit {
namespace {  // each file has its own copy, compiled with the flags of that file

// For each byte, the positions of its set bits, one byte each.
struct SetBits {
  std::uint64_t of[256];
  constexpr SetBits() : of() {
    for (unsigned bits = 0; bits < 256; bits++) {
      int count = 0;
      for (unsigned i = 0; i < 8; i++) {
        if ((bits >> i & 1) != 0) of[bits] |= static_cast<std::uint64_t>(i) << (8 * count++);
      }
    }
  }
};
constexpr SetBits set_bits;

}  // namespace
}  // namespace relakit
