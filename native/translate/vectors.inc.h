// The vector type, and what several of these kernels do with it: for example, read the last vector
// of a row, which may be shorter. Part of kernels.inc.h.

#include <cstdint>

#include "cpu/exponential.inc.h"

namespace relakit::translate::RELAKIT_ISA {
namespace {

using relakit::RELAKIT_ISA::ByteSums;
using relakit::RELAKIT_ISA::exponential;
using relakit::RELAKIT_ISA::store_sums;
using relakit::RELAKIT_ISA::Vector;

constexpr std::int64_t kWidth = Vector::width;

float largest_of(const Vector& x) {
  float entries[kWidth];
  x.store(entries);
  for (std::int64_t half = kWidth / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; i++) {
      entries[i] = entries[i + half] > entries[i] ? entries[i + half] : entries[i];
    }
  }
  return entries[0];
}

// Loads the vector at p, of which only `left` entries exist; the others become 0.
Vector load_up_to(const float* p, std::int64_t left) {
  return left >= kWidth ? Vector::load(p) : Vector::load(p, static_cast<int>(left));
}

void store_up_to(const Vector& x, float* p, std::int64_t left) {
  if (left >= kWidth) {
    x.store(p);
  } else {
    x.store(p, static_cast<int>(left));
  }
}

}  // namespace
}  // namespace relakit::translate::RELAKIT_ISA
