// The decoder's inner loops, written once over a vector type and compiled once per instruction set. The
// including file has defined RELAKIT_ISA and included the vector types of that name.
//
// Everything here is local to the file, and no template or inline function of the standard library is
// used: the linker would share one copy of it between files, compiled for an instruction set that a
// machine may lack.

#include <math.h>

#include <cstdint>

#include "translate/kernels.h"
#include "cpu/lanes_exponential.inc.h"

namespace relakit::decode::RELAKIT_ISA {
namespace {

using lanes::RELAKIT_ISA::ByteSums;
using lanes::RELAKIT_ISA::exponential;
using lanes::RELAKIT_ISA::Lanes;

constexpr std::int64_t kWidth = Lanes::width;

float largest_of(const Lanes& x) {
  float entries[kWidth];
  x.store(entries);
  float largest = entries[0];
  for (std::int64_t i = 1; i < kWidth; i++) largest = entries[i] > largest ? entries[i] : largest;
  return largest;
}

}  // namespace
}  // namespace relakit::decode::RELAKIT_ISA

#include "translate/linear.inc.h"

namespace relakit::decode::RELAKIT_ISA {
namespace {

// The vector at p, of which there are `left` entries; 0 behind them.
Lanes load_up_to(const float* p, std::int64_t left) {
  return left >= kWidth ? Lanes::load(p) : Lanes::load(p, static_cast<int>(left));
}

void store_up_to(const Lanes& x, float* p, std::int64_t left) {
  if (left >= kWidth) {
    x.store(p);
  } else {
    x.store(p, static_cast<int>(left));
  }
}

void layer_norm(const float* x, std::int64_t size, const float* gain, const float* bias, float eps,
                float* y) {
  Lanes total = Lanes::all(0.0f);
  for (std::int64_t i = 0; i < size; i += kWidth) total = total + load_up_to(x + i, size - i);
  const float mean = total.sum() / static_cast<float>(size);
  Lanes squares = Lanes::all(0.0f);
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Lanes centred = Lanes::load(x + i) - Lanes::all(mean);
    squares = centred.times_plus(centred, squares);
  }
  float square_sum = squares.sum();
  for (; i < size; i++) square_sum += (x[i] - mean) * (x[i] - mean);
  const Lanes scale = Lanes::all(1.0f / sqrtf(square_sum / static_cast<float>(size) + eps));
  for (i = 0; i < size; i += kWidth) {
    const Lanes normalised = (load_up_to(x + i, size - i) - Lanes::all(mean)) * scale;
    store_up_to(normalised.times_plus(load_up_to(gain + i, size - i),
                                      load_up_to(bias + i, size - i)),
                y + i, size - i);
  }
}

float dot(const float* a, const float* b, std::int64_t size) {
  Lanes even = Lanes::all(0.0f), odd = even;
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= size; i += 2 * kWidth) {
    even = Lanes::load(a + i).times_plus(Lanes::load(b + i), even);
    odd = Lanes::load(a + i + kWidth).times_plus(Lanes::load(b + i + kWidth), odd);
  }
  for (; i < size; i += kWidth) {
    even = load_up_to(a + i, size - i).times_plus(load_up_to(b + i, size - i), even);
  }
  return (even + odd).sum();
}

// From scores to the weights of softmax. The entries behind `count`, up to a whole vector, are used.
void softmax(float* scores, std::int64_t count) {
  float largest = scores[0];
  for (std::int64_t i = 1; i < count; i++) {
    if (!(scores[i] <= largest)) largest = scores[i];  // NaN too
  }
  for (std::int64_t i = count; i % kWidth != 0; i++) scores[i] = -HUGE_VALF;
  Lanes total = Lanes::all(0.0f);
  for (std::int64_t i = 0; i < count; i += kWidth) {
    const Lanes e = exponential(Lanes::load(scores + i) - Lanes::all(largest));
    e.store(scores + i);
    total = total + e;
  }
  const Lanes factor = Lanes::all(1.0f / total.sum());
  for (std::int64_t i = 0; i < count; i += kWidth) {
    (Lanes::load(scores + i) * factor).store(scores + i);
  }
}

// output = sum of weights[i] * the row at places[i]
void mix(const float* weights, const float* rows, std::int64_t row_stride,
         const std::int32_t* places, std::int64_t count, std::int64_t size, float* output) {
  std::int64_t feature = 0;
  for (; feature + 4 * kWidth <= size; feature += 4 * kWidth) {
    Lanes sums[4] = {Lanes::all(0.0f), Lanes::all(0.0f), Lanes::all(0.0f), Lanes::all(0.0f)};
    for (std::int64_t i = 0; i < count; i++) {
      const float* row = rows + places[i] * row_stride + feature;
      const Lanes weight = Lanes::all(weights[i]);
      for (int v = 0; v < 4; v++) sums[v] = weight.times_plus(Lanes::load(row + v * kWidth), sums[v]);
    }
    for (int v = 0; v < 4; v++) sums[v].store(output + feature + v * kWidth);
  }
  for (; feature < size; feature += kWidth) {
    Lanes sum = Lanes::all(0.0f);
    for (std::int64_t i = 0; i < count; i++) {
      const Lanes row = load_up_to(rows + places[i] * row_stride + feature, size - feature);
      sum = Lanes::all(weights[i]).times_plus(row, sum);
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
  // Places of the weights that are not zero; the room behind the scores is for whole vectors.
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
        // Written always, kept only if above zero (or NaN): no jump that is hard to foresee.
        c.scratch[found] = score;
        kept[found] = c.places[i];
        found += !(score <= 0.0f);
      }
      raise_and_divide(c, c.scratch, found);
      mix(c.scratch, values, c.row_stride, kept, found, c.head, output);
    }
  }
}

float add_exponentials(const float* logits, float* largest, float* sum) {
  constexpr int vectors = kPanel / kWidth;
  Lanes x[vectors];
  for (int v = 0; v < vectors; v++) x[v] = Lanes::load(logits + v * kWidth);
  Lanes most = x[0];
  for (int v = 1; v < vectors; v++) most = most.max(x[v]);
  const float largest_here = largest_of(most);
  if (largest_here > *largest) {
    *sum *= expf(*largest - largest_here);
    *largest = largest_here;
  }
  const Lanes shift = Lanes::all(*largest);
  Lanes total = Lanes::all(0.0f);
  for (int v = 0; v < vectors; v++) total = total + exponential(x[v] - shift);
  *sum += total.sum();
  return largest_here;
}

}  // namespace
}  // namespace relakit::decode::RELAKIT_ISA
