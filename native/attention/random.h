#pragma once

#include <cstdint>

namespace relakit::attention {

// Random bits as a function of a seed and a position, so that backward draws the same bits as
// forward, in whatever order the work is done. This is the finaliser of SplitMix64, applied twice.
static inline std::uint32_t random_bits(std::uint64_t seed, std::uint64_t row, std::uint64_t column) {
  const auto mix = [](std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  };
  return static_cast<std::uint32_t>(mix(mix(seed ^ (row * 0xD6E8FEB86659FD93ull)) + column) >> 32);
}

}  // namespace relakit::attention
