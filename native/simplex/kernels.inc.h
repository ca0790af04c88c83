// Sparsemax and 1.5-entmax, written once over the vector type and compiled once per instruction set.
// The including file must define RELAKIT_ISA and include the vector type of that name.
//
// Everything here is local to the file, and no template or inline function of the standard library
// is used: the linker would share one copy of it between files, compiled for an instruction set
// that a machine may lack.

#include <math.h>

#include <cstdint>

#include "simplex/problem.h"

namespace relakit::simplex::RELAKIT_ISA {
namespace {

using relakit::RELAKIT_ISA::Vector;

constexpr int kWidth = Vector::width;
// More steps than Newton's method takes in float32: some 15, for rows of up to 100,000 keys.
constexpr int kMostSteps = 64;
// This many keys are summed up together: a sum of 100,000 numbers, one by one, would round too often.
constexpr std::int64_t kBlockKeys = 1024;

// Call visit(key, how many) for each vector of a row, the last of which may be a part.
template <class Visit>
void for_each_vector(std::int64_t keys, const Visit& visit) {
  std::int64_t key = 0;
  for (; key + kWidth <= keys; key += kWidth) visit(key, kWidth);
  if (key < keys) visit(key, static_cast<int>(keys - key));
}

Vector load(const float* p, int count) {
  return count == kWidth ? Vector::load(p) : Vector::load(p, count);
}
void store(const Vector& x, float* p, int count) {
  if (count == kWidth) {
    x.store(p);
  } else {
    x.store(p, count);
  }
}

// Of all scores but NaN.
float maximum_of(const float* scores, std::int64_t keys) {
  Vector highest = Vector::all(-INFINITY);
  std::int64_t key = 0;
  for (; key + kWidth <= keys; key += kWidth) highest = Vector::load(scores + key).max(highest);
  float lanes[kWidth];
  highest.store(lanes);
  float best = -INFINITY;
  for (const float x : lanes) best = x > best ? x : best;
  for (; key < keys; key++) best = scores[key] > best ? scores[key] : best;
  return best;
}

// How far x is above the threshold, at least 0; 0 also beyond the end of the row.
Vector excess(const float* scores, int count, const Vector& scale, const Vector& maximum,
              const Vector& threshold) {
  const Vector above = (load(scores, count) * scale - maximum - threshold).rectified();
  return count == kWidth ? above : above.where((1u << count) - 1);
}

// The sum of the weights, a convex function of the threshold, is at least 1 at the maximum minus 1:
// the key with the maximum alone has a weight of 1 there. From there Newton's method never oversteps
// the solution. NaN in a row makes its threshold NaN.
template <bool is_squared>
float solve(const float* scores, std::int64_t keys, float scale, float maximum) {
  const Vector scales = Vector::all(scale), maxima = Vector::all(maximum);
  const Vector ones = Vector::all(1.0f);
  float threshold = -1.0f;
  for (int step = 0; step < kMostSteps; step++) {
    const Vector at = Vector::all(threshold), zero = Vector::all(0.0f);
    Vector sum = zero, slope = zero;
    for (std::int64_t start = 0; start < keys; start += kBlockKeys) {
      Vector block_sum = zero, block_slope = zero;
      const std::int64_t left = keys - start;
      for_each_vector(left < kBlockKeys ? left : kBlockKeys, [&](std::int64_t key, int count) {
        const Vector r = excess(scores + start + key, count, scales, maxima, at);
        if constexpr (is_squared) {
          block_sum = block_sum.plus_product(r, r);
          block_slope = block_slope + r;
        } else {
          block_sum = block_sum + r;
          block_slope = block_slope + ones.where(r.not_below_or_zero());
        }
      });
      sum = sum + block_sum;
      slope = slope + block_slope;
    }
    const float next = threshold + (sum.sum() - 1.0f) / ((is_squared ? 2.0f : 1.0f) * slope.sum());
    if (next != next) return next;
    if (next <= threshold) break;
    threshold = next;
  }
  return threshold;
}

template <bool is_squared>
void forward_rows(const Problem& p, const Forward& f, std::int64_t begin, std::int64_t end) {
  const float scale = is_squared ? 0.5f : 1.0f;
  for (std::int64_t row = begin; row < end; row++) {
    const float* scores = f.scores + row * p.keys;
    float* weights = f.weights + row * p.keys;
    float highest = maximum_of(scores, p.keys) * scale;
    if (highest == -INFINITY) highest = 0.0f;  // nothing to see: -inf minus -inf would be NaN
    const Vector threshold = Vector::all(solve<is_squared>(scores, p.keys, scale, highest));
    const Vector scales = Vector::all(scale), maximum = Vector::all(highest);
    for_each_vector(p.keys, [&](std::int64_t key, int count) {
      const Vector r = excess(scores + key, count, scales, maximum, threshold);
      store(is_squared ? r * r : r, weights + key, count);
    });
  }
}

// With g = root of the weight (1.5-entmax), or 1 where there is weight (sparsemax), the gradient of
// a score is g times what its weight's gradient is above the mean that g weighs: the weights' sum
// cannot change.
template <bool is_squared>
void backward_rows(const Problem& p, const Backward& b, std::int64_t begin, std::int64_t end) {
  const Vector ones = Vector::all(1.0f);
  for (std::int64_t row = begin; row < end; row++) {
    const float* weights = b.weights + row * p.keys;
    const float* upstream = b.grad_weights + row * p.keys;
    float* grad_scores = b.grad_scores + row * p.keys;
    const auto slope = [&](std::int64_t key, int count) {
      const Vector w = load(weights + key, count);
      return is_squared ? w.root() : ones.where(w.not_below_or_zero());
    };
    Vector products = Vector::all(0.0f), slopes = products;
    for_each_vector(p.keys, [&](std::int64_t key, int count) {
      const Vector g = slope(key, count);
      slopes = slopes + g;
      products = products.plus_product(g, load(upstream + key, count));
    });
    const float total = slopes.sum();
    const Vector mean = Vector::all(total == 0.0f ? 0.0f : products.sum() / total);
    for_each_vector(p.keys, [&](std::int64_t key, int count) {
      store(slope(key, count) * (load(upstream + key, count) - mean), grad_scores + key, count);
    });
  }
}

void forward(const Problem& p, const Forward& f, std::int64_t begin, std::int64_t end) {
  if (p.is_squared) {
    forward_rows<true>(p, f, begin, end);
  } else {
    forward_rows<false>(p, f, begin, end);
  }
}

void backward(const Problem& p, const Backward& b, std::int64_t begin,
              std::int64_t end) {
  if (p.is_squared) {
    backward_rows<true>(p, b, begin, end);
  } else {
    backward_rows<false>(p, b, begin, end);
  }
}

}  // namespace
}  // namespace relakit::simplex::RELAKIT_ISA
