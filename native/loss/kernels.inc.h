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

float read(const float* p) { return *p; }
float read(const std::uint16_t* p) { return bfloat16_to_float(*p); }
void write(float x, float* p) { *p = x; }
void write(float x, std::uint16_t* p) { *p = bfloat16_from_float(x); }

// The row as floats; returns its maximum, of all but NaN, and adds up its logits.
template <class T>
float read_row(const T* logits, std::int64_t size, float* row, float& sum) {
  Vector highest = Vector::all(-INFINITY), total = Vector::all(0.0f);
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Vector x = Vector::load(logits + i);
    x.store(row + i);
    highest = x.max(highest);
    total = total + x;
  }
  float lanes[kWidth];
  highest.store(lanes);
  float maximum = -INFINITY;
  for (const float x : lanes) maximum = x > maximum ? x : maximum;
  sum = total.sum();
  for (; i < size; i++) {
    row[i] = read(logits + i);
    maximum = row[i] > maximum ? row[i] : maximum;
    sum += row[i];
  }
  return maximum;
}

// Replaces the row by its exponentials; returns their sum.
float exponentiate(float* row, std::int64_t size, float maximum) {
  const Vector shift = Vector::all(maximum);
  Vector total = Vector::all(0.0f);
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Vector e = exponential(Vector::load(row + i) - shift);
    e.store(row + i);
    total = total + e;
  }
  float sum = total.sum();
  if (i < size) {
    const int left = static_cast<int>(size - i);
    float lanes[kWidth];
    exponential(Vector::load(row + i, left) - shift).store(lanes);
    for (int lane = 0; lane < left; lane++) {
      row[i + lane] = lanes[lane];
      sum += lanes[lane];
    }
  }
  return sum;
}

template <class T>
void losses_of_rows(const Problem& p, const Result& result, float* row, std::int64_t begin,
                    std::int64_t end) {
  const float size = static_cast<float>(p.vocabulary), spread = p.smoothing / size;
  for (std::int64_t index = begin; index < end; index++) {
    const T* logits = static_cast<const T*>(p.logits) + index * p.vocabulary;
    const std::int64_t target = p.targets[index];
    float sum;
    const float maximum = read_row(logits, p.vocabulary, row, sum);
    const float chosen = row[target] - maximum, mean = sum / size - maximum;
    const float total = exponentiate(row, p.vocabulary, maximum), log_total = logf(total);
    result.losses[index] = {log_total - (1.0f - p.smoothing) * chosen - p.smoothing * mean,
                            log_total - chosen};
    if (result.gradient == nullptr) continue;
    T* gradient = static_cast<T*>(result.gradient) + index * p.vocabulary;
    const float share = p.shares == nullptr ? 1.0f : p.shares[index];
    const float factor = share / total, offset = -share * spread;
    const Vector factors = Vector::all(factor), offsets = Vector::all(offset);
    std::int64_t i = 0;
    for (; i + kWidth <= p.vocabulary; i += kWidth) {
      offsets.plus_product(Vector::load(row + i), factors).store(gradient + i);
    }
    for (; i < p.vocabulary; i++) write(row[i] * factor + offset, gradient + i);
    write(row[target] * factor + offset - share * (1.0f - p.smoothing), gradient + target);
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
