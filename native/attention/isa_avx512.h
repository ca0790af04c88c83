#pragma once

#include <immintrin.h>

#include <cstdint>

#include "cpu/bits.h"
#include "cpu/byte_sums_avx512.h"
#include "cpu/vector_avx512.h"

namespace relakit::attention::avx512 {
namespace {

using namespace relakit::avx512;  // the vector type, and functions of several vectors

// isa_portable.h explains the names.
struct TileShape {
  static constexpr int rows = 6, columns = 4;  // 24 sums in 32 registers
  static constexpr int sum_rows = 6, sum_columns = 4;
  static constexpr int steps_per_line = 1;
};

inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
  const __m512i x = _mm512_loadu_si512(bytes);
  return _mm512_test_epi8_mask(x, x);
}

#if defined(RELAKIT_VBMI2)
inline __m128i chosen_bytes(std::uint32_t bits, __m128i sixteen) {
  return _mm_maskz_compress_epi8(static_cast<__mmask16>(bits), sixteen);
}

// Handles all 64 positions in one instruction and writes 64 bytes.
inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  alignas(64) static constexpr std::uint8_t counting[64] = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
      22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
      44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  const __m512i positions = _mm512_add_epi8(_mm512_load_si512(counting),
                                            _mm512_set1_epi8(static_cast<char>(base)));
  _mm512_storeu_si512(list + length, _mm512_maskz_compress_epi8(bits, positions));
  return length + count_bits(bits);
}
#else
// Bytes are compressed as numbers of 32 bits.
inline __m128i chosen_bytes(std::uint32_t bits, __m512i sixteen) {
  return _mm512_cvtepi32_epi8(
      _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), sixteen));
}
inline __m128i chosen_bytes(std::uint32_t bits, __m128i sixteen) {
  return chosen_bytes(bits, _mm512_cvtepu8_epi32(sixteen));
}

// Handles 16 positions at a time and writes 16 bytes each time.
inline int append_positions(std::uint64_t bits, int base, std::uint8_t* list, int length) {
  const __m512i counting =
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int j = 0; j < 64; j += 16) {
    const auto part = static_cast<std::uint32_t>(bits >> j & 0xFFFF);
    const __m512i positions = _mm512_add_epi32(counting, _mm512_set1_epi32(base + j));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(list + length), chosen_bytes(part, positions));
    length += count_bits(part);
  }
  return length;
}
#endif

inline int append_entries(std::uint64_t bits, int base, const float* numbers, std::uint8_t* list,
                          float* listed, int length) {
  int place = length;
  for (int j = 0; j < 64; j += Vector::width) {
    const auto part = static_cast<std::uint32_t>(bits >> j & 0xFFFF);
    Vector::load(numbers + j).store_chosen(part, listed + place);
    place += count_bits(part);
  }
  return append_positions(bits, base, list, length);
}

// The same as transpose_bits of cpu/bits.h, which the other instruction sets use.
inline void transpose_bits(std::uint64_t (&words)[64]) {
  // Within each group of eight words, put byte b of all of them side by side.
  const __m512i in_pairs = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  alignas(64) static constexpr std::uint16_t by_byte[32] = {
      0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
      4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
  __m512i eights[8];
  for (int a = 0; a < 8; a++) {
    const __m512i rows = _mm512_loadu_si512(words + 8 * a);
    eights[a] = _mm512_permutexvar_epi16(_mm512_load_si512(by_byte),
                                         _mm512_shuffle_epi8(rows, in_pairs));
  }
  // Put byte b of all 64 words side by side, then extract one bit after the other.
  const __m512i every_eighth = _mm512_setr_epi64(0, 8, 16, 24, 32, 40, 48, 56);
  alignas(64) std::uint64_t bytes[64];
  for (int a = 0; a < 8; a++) _mm512_store_si512(bytes + 8 * a, eights[a]);
  for (int b = 0; b < 8; b++) {
    const __m512i column = _mm512_i64gather_epi64(every_eighth, bytes + b, 8);
    for (int k = 0; k < 8; k++) {
      words[8 * b + k] = _mm512_test_epi8_mask(column, _mm512_set1_epi8(static_cast<char>(1 << k)));
    }
  }
}

}  // namespace
}  // namespace relakit::attention::avx512
