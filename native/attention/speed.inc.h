// Isolated parts of the kernels that `relakit bench attention --tune` times. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/unroll.h"

namespace relakit::attention::RELAKIT_ISA {
namespace {

// Multiply and add in registers, kAddsAtOnce vectors at a time: the most that the processor can do.
// Returns the number of floating-point operations.
double multiply_and_add(std::int64_t times) {
  constexpr int kAddsAtOnce = 12;  // independent chains of additions; more than can be in flight
  Vector sums[kAddsAtOnce];
  RELAKIT_UNROLL
  for (int i = 0; i < kAddsAtOnce; i++) sums[i] = Vector::all(static_cast<float>(i));
  const Vector x = Vector::all(0.5f), y = Vector::all(1e-3f);
  for (std::int64_t t = 0; t < times; t++) {
    RELAKIT_UNROLL
    for (int i = 0; i < kAddsAtOnce; i++) sums[i] = sums[i].plus_product(x, y);
  }
  float total = 0.0f;
  for (const Vector& sum : sums) total += sum.sum();
  // Never true, but the compiler cannot know that without computing the sums.
  return total < 0.0f ? 0.0 : 2.0 * kAddsAtOnce * kWidth * static_cast<double>(times);
}

// Compute the scores of one head as forward does without screening: transpose the keys, multiply,
// rectify, set bits. Returns the number of floating-point operations in the products.
double score_products(std::int64_t queries, std::int64_t keys, std::int64_t dim, std::int64_t times) {
  const std::int64_t padded = round_up(dim, kWidth);
  Buffer query(queries * padded, Start::zero), key(keys * padded, Start::zero);
  Buffer panels(kKeyTile * padded);
  for (std::int64_t i = 0; i < queries * padded; i++) query[i] = static_cast<float>(i % 7 - 3);
  for (std::int64_t i = 0; i < keys * padded; i++) key[i] = static_cast<float>(i % 5 - 2);
  Tile tile;
  PrefetchQueue nothing_ahead{};
  for (std::int64_t t = 0; t < times; t++) {
    for (std::int64_t j = 0; j < keys; j += kKeyTile) {
      const int columns = static_cast<int>(least(kKeyTile, keys - j));
      transpose({key + j * padded, padded}, padded, columns, panels);
      for (std::int64_t i = 0; i < queries; i += kQueryTile) {
        tile.start(static_cast<int>(least(kQueryTile, queries - i)), columns);
        for (int r = 0; r < tile.rows; r++) tile.bits[r] = KeyBits{};
        products<FloatSums>({query + i * padded, padded}, tile.rows, panels, padded, 0.0f,
                            [&](int) { return columns; }, nothing_ahead, tile.rectify(0));
      }
    }
  }
  return 2.0 * static_cast<double>(queries * keys * dim) * static_cast<double>(times);
}

}  // namespace
}  // namespace relakit::attention::RELAKIT_ISA
