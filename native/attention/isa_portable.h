#pragma once

#include <cstdint>

#include "cpu/bits.h"
#include "cpu/vector_portable.h"

// What attention needs from an instruction set besides the vector type. This is the plain C++
// version; isa_avx2.h, isa_avx512.h and isa_neon.h define the same names. The comments here apply
// to all of them.

namespace relakit::attention::portable {
namespace {

using namespace relakit::portable;  // the vector type, and functions of several vectors

// How many sums are kept in registers at once.
struct TileShape {
  static constexpr int rows = 4, columns = 1;  // scores: queries, and vectors of keys
  static constexpr int sum_rows = 1, sum_columns = 4;  // dense sums: rows, and vectors of a row
  // Steps of a product, each with the sums above, in the time it takes to read a line of memory.
  static constexpr int steps_per_line = 4;
};

// One bit for each of 64 bytes: whether it is not 0.
inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 64; i++) bits |= static_cast<std::uint64_t>(bytes[i] != 0) << i;
  return bits;
}

// Append the positions of the set bits, plus base, to a list; returns the list's new length. May
// overwrite the 64 bytes that follow.
inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  for (; bits != 0; bits &= bits - 1) {
    list[length++] = static_cast<std::uint8_t>(base + lowest_bit(bits));
  }
  return length;
}

// The same, and beside the list append those of 64 numbers that belong to the set bits. May
// overwrite a vector that follows.
inline int append_entries(std::uint64_t bits, int base, const float* numbers, std::uint8_t* list,
                          float* listed, int length) {
  const int end = append_positions(bits, base, list, length);
  for (int t = length; t < end; t++) listed[t] = numbers[list[t] - base];
  return end;
}

}  // namespace
}  // namespace relakit::attention::portable
