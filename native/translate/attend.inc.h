// One row's attention to others, with softmax or relu, in all heads. Part of kernels.inc.h.
//
// Simpler than the kernels in attention/: one query at a time, and the rows that it attends to lie
// wherever its ancestors in the beam wrote them.

#include <math.h>

#include <cstdint>

#include "translate/kernels.h"

namespace relakit::translate::RELAKIT_ISA {
namespace {

float dot(const float* a, const float* b, std::int64_t size) {
  Vector even = Vector::all(0.0f), odd = even;
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= size; i += 2 * kWidth) {
    const Vector x = Vector::load(a + i);
    even = even.plus_product(x, Vector::load(b + i));
    const Vector y = Vector::load(a + i + kWidth);
    odd = odd.plus_product(y, Vector::load(b + i + kWidth));
  }
  for (; i < size; i += kWidth) {
    const Vector x = load_up_to(a + i, size - i);
    even = even.plus_product(x, load_up_to(b + i, size - i));
  }
  return (even + odd).sum();
}

// From scores to the weights of softmax. Entries after `count`, up to a whole vector, are overwritten.
void softmax(float* scores, std::int64_t count) {
  float largest = scores[0];
  for (std::int64_t i = 1; i < count; i++) {
    if (!(scores[i] <= largest)) largest = scores[i];  // NaN too
  }
  for (std::int64_t i = count; i % kWidth != 0; i++) scores[i] = -HUGE_VALF;
  Vector total = Vector::all(0.0f);
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const Vector e = exponential(Vector::load(scores + i) - Vector::all(largest));
    e.store(scores + i);
    total = total + e;
  }
  const Vector factor = Vector::all(1.0f / total.sum());
  for (std::int64_t i = 0; i < count; i += kWidth) {
    (Vector::load(scores + i) * factor).store(scores + i);
  }
}

// output = sum of weights[i] * the row at places[i]
void mix(const float* weights, const float* rows, std::int64_t row_stride,
         const std::int32_t* places, std::int64_t count, std::int64_t size, float* output) {
  std::int64_t feature = 0;
  for (; feature + 4 * kWidth <= size; feature += 4 * kWidth) {
    Vector sums[4] = {Vector::all(0.0f), Vector::all(0.0f), Vector::all(0.0f), Vector::all(0.0f)};
    for (std::int64_t i = 0; i < count; i++) {
      const float* row = rows + places[i] * row_stride + feature;
      const Vector weight = Vector::all(weights[i]);
      for (int v = 0; v < 4; v++) {
        sums[v] = sums[v].plus_product(weight, Vector::load(row + v * kWidth));
      }
    }
    for (int v = 0; v < 4; v++) sums[v].store(output + feature + v * kWidth);
  }
  for (; feature < size; feature += kWidth) {
    Vector sum = Vector::all(0.0f);
    for (std::int64_t i = 0; i < count; i++) {
      const Vector row = load_up_to(rows + places[i] * row_stride + feature, size - feature);
      sum = sum.plus_product(Vector::all(weights[i]), row);
    }
    store_up_to(sum, output + feature, size - feature);
  }
}

// From scores above the threshold, minus it, to relu's weights.
void raise_and_divide(const AttendCall& c, float* scores, std::int64_t count) {
  if (c.power == 2.0f) {
    for (std::int64_t i = 0; i < count; i++) scores[i] *= scores[i];
  } else if (c.power != 1.0f) {
    for (std::int64_t i = 0; i < count; i++) scores[i] = powf(scores[i], c.power);
  }
  if (c.length_exponent != 0.0f) {
    const float divisor = powf(static_cast<float>(c.count), c.length_exponent);
    for (std::int64_t i = 0; i < count; i++) scores[i] /= divisor;
  }
}

void attend(const AttendCall& c) {
  const std::int64_t features = c.heads * c.head;
  // Places of the weights that are not zero. There is a gap, as scores take up whole vectors.
  auto* kept = reinterpret_cast<std::int32_t*>(c.scratch + c.count + kPanel);
  for (std::int64_t head = 0; head < c.heads; head++) {
    const float* query = c.query + head * c.head;
    const float* keys = c.rows + head * c.head;
    const float* values = keys + features;
    float* output = c.output + head * c.head;
    if (c.is_softmax) {
      for (std::int64_t i = 0; i < c.count; i++) {
        c.scratch[i] = c.scale * dot(query, keys + c.places[i] * c.row_stride, c.head);
      }
      softmax(c.scratch, c.count);
      mix(c.scratch, values, c.row_stride, c.places, c.count, c.head, output);
    } else {
      const float threshold = c.thresholds == nullptr ? 0.0f : c.thresholds[head];
      std::int64_t found = 0;
      for (std::int64_t i = 0; i < c.count; i++) {
        const float score =
            c.scale * dot(query, keys + c.places[i] * c.row_stride, c.head) - threshold;
        // Always written, but kept only if above zero or NaN: that needs no branch, which would be
        // hard to predict.
        c.scratch[found] = score;
        kept[found] = c.places[i];
        found += !(score <= 0.0f);
      }
      raise_and_divide(c, c.scratch, found);
      mix(c.scratch, values, c.row_stride, kept, found, c.head, output);
    }
  }
}

}  // namespace
}  // namespace relakit::translate::RELAKIT_ISA
