#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "cpu/bits.h"
#include "cpu/set_bits.h"
#include "cpu/vector_neon.h"

namespace relakit::attention::neon {
namespace {

using namespace relakit::neon;  // the vector type, and functions of several vectors

// isa_portable.h explains the names.
struct TileShape {
  // 10 sums of two registers each in 32 registers; with 12, GCC keeps some in memory.
  static constexpr int rows = 5, columns = 2;
  static constexpr int sum_rows = 2, sum_columns = 4;
  static constexpr int steps_per_line = 4;
};

inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  constexpr std::uint8_t each[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t mask = vld1q_u8(each);
  uint8x16_t set[4];
  for (int i = 0; i < 4; i++) {
    const uint8x16_t x = vld1q_u8(bytes + 16 * i);
    set[i] = vandq_u8(vtstq_u8(x, x), mask);
  }
  // Add neighbours three times, until eight bytes have become one.
  const uint8x16_t fours = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)), 0);
}

// Handles eight bits at a time and writes 8 bytes each time. NEON counts bits in vectors, so all
// eight counts are found at once.
inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  const std::uint64_t counts =
      vget_lane_u64(vreinterpret_u64_u8(vcnt_u8(vcreate_u8(bits))), 0);
  const std::uint64_t ends = counts * 0x0101010101010101ull;  // byte i: the sum of counts 0 to i
  const std::uint64_t bases = 0x0101010101010101ull * static_cast<std::uint64_t>(base);
  std::uint8_t* end = list + length;
  for (int i = 0; i < 8; i++) {
    const std::uint64_t found = set_bits.of[bits >> (8 * i) & 255] + bases +
                                0x0808080808080808ull * static_cast<std::uint64_t>(i);
    std::memcpy(end, &found, sizeof found);
    end = list + length + (ends >> (8 * i) & 255);
  }
  return length + static_cast<int>(ends >> 56);
}

inline int append_entries(std::uint64_t bits, int base, const float* numbers, std::uint8_t* list,
                          float* listed, int length) {
  const int end = append_positions(bits, base, list, length);
  listed += length;
  for (int j = 0; j < 64; j += Vector::width) {
    const auto part = static_cast<std::uint32_t>(bits >> j & 255);
    Vector::load(numbers + j).store_chosen(part, listed);
    listed += count_bits(part);
  }
  return end;
}

}  // namespace
}  // namespace relakit::attention::neon
