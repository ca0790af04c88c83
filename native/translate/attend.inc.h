// The attention of one row to others, with softmax or relu, in all heads. Part of kernels.inc.h.
//
// Simpler than the kernels in attention/: one query at a time, and the rows that it attends to lie
// wherever its ancestors in the beam wrote them.

#include <math.h>

#include <cstdint>

#include "translate/kernels.h"

namespace relakit::translate::RELAKIT_ISA {
namespace {

// scores[i] = query * the key at places[i], four at a time: up to three entries after `count` are
// overwritten.
void multiply_keys(const float* query, const float* keys, std::int64_t row_stride,
                   const std::int32_t* places, std::int64_t count, std::int64_t size,
                   float* scores) {
  for (std::int64_t first = 0; first < count; first += 4) {
    const float* key[4];
    for (std::int64_t i = 0; i < 4; i++) {
      key[i] = keys + places[first + i < count ? first + i : first] * row_stride;
    }
    Vector sums[4] = {Vector::all(0.0f), Vector::all(0.0f), Vector::all(0.0f), Vector::all(0.0f)};
    std::int64_t feature = 0;
    for (; feature + kWidth <= size; feature += kWidth) {
      const Vector x = Vector::load(query + feature);
      for (int i = 0; i < 4; i++) {
        sums[i] = sums[i].plus_product(x, Vector::load(key[i] + feature));
      }
    }
    if (feature < size) {
      const Vector x = load_up_to(query + feature, size - feature);
      for (int i = 0; i < 4; i++) {
        sums[i] = sums[i].plus_product(x, load_up_to(key[i] + feature, size - feature));
      }
    }
    store_sums(sums, scores + first);
  }
}

// Turns scores into softmax weights. Entries after `count`, up to a whole vector, are overwritten.
void softmax(float* scores, std::int64_t count) {
  float largest = scores[0];
  for (std::int64_t i = 1; i < count; i++) {
    if (scores[i] > largest) largest = scores[i];  // NaN shows up in the total
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

// Turns the differences that `rectify` leaves into relu's weights.
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

// Keeps only the scaled scores above the threshold: writes their differences from it to the front
// of `scores`, and their places to `kept`. Returns how many there are.
std::int64_t rectify(float* scores, std::int64_t count, float scale, float threshold,
                     const std::int32_t* places, std::int32_t* kept) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; i++) {
    const float score = scale * scores[i] - threshold;
    // Always written, but kept only if above zero or NaN: that needs no branch, which would be hard
    // to predict.
    scores[found] = score;
    kept[found] = places[i];
    found += !(score <= 0.0f);
  }
  return found;
}

void attend(const AttendCall& c) {
  const std::int64_t features = c.heads * c.head;
  // Places of the non-zero weights. The gap is there because scores take up whole vectors.
  auto* kept = reinterpret_cast<std::int32_t*>(c.scratch + c.count + kPanel);
  for (std::int64_t head = 0; head < c.heads; head++) {
    const float* keys = c.rows + head * c.head;
    const float* values = keys + features;
    float* output = c.output + head * c.head;
    multiply_keys(c.query + head * c.head, keys, c.row_stride, c.places, c.count, c.head,
                  c.scratch);
    if (c.is_softmax) {
      for (std::int64_t i = 0; i < c.count; i++) c.scratch[i] *= c.scale;
      softmax(c.scratch, c.count);
      mix(c.scratch, values, c.row_stride, c.places, c.count, c.head, output);
    } else {
      const float threshold = c.thresholds == nullptr ? 0.0f : c.thresholds[head];
      const std::int64_t found =
          rectify(c.scratch, c.count, c.scale, threshold, c.places, kept);
      raise_and_divide(c, c.scratch, found);
      mix(c.scratch, values, c.row_stride, kept, found, c.head, output);
    }
  }
}

}  // namespace
}  // namespace relakit::translate::RELAKIT_ISA
