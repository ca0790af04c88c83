// Label-smoothed cross-entropy, written once over the vector type and compiled once per instruction
// set. The including file must define RELAKIT_ISA and include the vector type of that name.
//
// Everything here is local to the file, and no template or inline function of the standard library
// is used: the linker would share one copy of it between files, compiled for an instruction set
// that a machine may lack.

#include <math.h>

#include <cstdint>

#include "cpu/bfloat16.h"
#include "cpu/exponential.inc.h"
#include "loss/problem.h"

namespace relakit::loss::RELAKIT_ISA {
namespace {

using relakit::RELAKIT_ISA::Vector;
using relakit::RELAKIT_ISA::exponential;

constexpr int kWidth = Vector::width;

// The row as floats; returns its maximum, of all but NaN.
template <class T>
float read_row(const T* logits, std::int64_t size, float* row) {
  Vector highest = Vector::all(-INFINITY);
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Vector x = Vector::load(logits + i);
    x.store(row + i);
    highest = x.max(highest);
  }
  float lanes[kWidth];
  highest.store(lanes);
  float maximum = -INFINITY;
  for (const float x : lanes) maximum = x > maximum ? x : maximum;
  for (; i < size; i++) {
    row[i] = to_float(logits[i]);
    maximum = row[i] > maximum ? row[i] : maximum;
  }
  return maximum;
}

struct Sums {
  float exponentials, differences;
};

// Replaces the row by the exponentials of its differences from the maximum; returns the sums.
Sums exponentiate(float* row, std::int64_t size, float maximum) {
  const Vector shift = Vector::all(maximum);
  Vector total = Vector::all(0.0f), differences = total;
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Vector difference = Vector::load(row + i) - shift, e = exponential(difference);
    e.store(row + i);
    total = total + e;
    differences = differences + difference;
  }
  Sums sums{total.sum(), differences.sum()};
  if (i < size) {
    const int left = static_cast<int>(size - i);
    float lanes[kWidth];
    exponential(Vector::load(row + i, left) - shift).store(lanes);
    for (int lane = 0; lane < left; lane++) {
      sums.differences += row[i + lane] - maximum;
      sums.exponentials += lanes[lane];
      row[i + lane] = lanes[lane];
    }
  }
  return sums;
}

template <class T>
void losses_of_rows(const Problem& p, const Result& result, float* row, std::int64_t begin,
                    std::int64_t end) {
  const float size = static_cast<float>(p.vocabulary), spread = p.smoothing / size;
  for (std::int64_t index = begin; index < end; index++) {
    const T* logits = static_cast<const T*>(p.logits) + index * p.vocabulary;
    const std::int64_t target = p.targets[index];
    const float maximum = read_row(logits, p.vocabulary, row), chosen = row[target] - maximum;
    const Sums sums = exponentiate(row, p.vocabulary, maximum);
    const float log_total = logf(sums.exponentials), mean = sums.differences / size;
    result.losses[index] = {log_total - (1.0f - p.smoothing) * chosen - p.smoothing * mean,
                            log_total - chosen};
    if (result.gradient == nullptr) continue;
    T* gradient = static_cast<T*>(result.gradient) + index * p.vocabulary;
    const float share = p.shares == nullptr ? 1.0f : p.shares[index];
    const float factor = share / sums.exponentials, offset = -share * spread;
    const Vector factors = Vector::all(factor), offsets = Vector::all(offset);
    std::int64_t i = 0;
    for (; i + kWidth <= p.vocabulary; i += kWidth) {
      offsets.plus_product(Vector::load(row + i), factors).store(gradient + i);
    }
    for (; i < p.vocabulary; i++) from_float(row[i] * factor + offset, gradient[i]);
    from_float(row[target] * factor + offset - share * (1.0f - p.smoothing), gradient[target]);
  }
}

void losses(const Problem& p, const Result& result, float* scratch, std::int64_t begin,
            std::int64_t end) {
  if (p.is_bfloat16) {
    losses_of_rows<std::uint16_t>(p, result, scratch, begin, end);
  } else {
    losses_of_rows<float>(p, result, scratch, begin, end);
  }
}

}  // namespace
}  // namespace relakit::loss::RELAKIT_ISA
