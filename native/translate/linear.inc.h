// Linear layers, in float32 or in bytes, and the rounding of their inputs to bytes. Weights are
// read once per tile of rows, whose sums stay in registers. Part of kernels.inc.h.

#include <math.h>

#include <cstdint>

#include "cpu/unroll.h"
#include "translate/kernels.h"

namespace relakit::translate::RELAKIT_ISA {
namespace {

// Weights lie in strips of this many vectors of outputs; float32 tiles are as wide as a strip.
constexpr int kStripVectors = 2;
constexpr std::int64_t kStrip = kStripVectors * kWidth;
constexpr Layout layout{kStrip, ByteSums::adds_in_16_bits};

void finish(const LinearCall& c, Vector sum, std::int64_t row, std::int64_t column) {
  if (c.is_rectified) sum = sum.rectified();
  if (c.added != nullptr) sum = sum + Vector::load(c.added + row * c.added_stride + column);
  sum.store(c.y + row * c.y_stride + column - c.first_output);
}

// Computes `rows` rows of the strip of outputs that starts at `column`.
template <int rows>
void float_tile(const LinearCall& c, std::int64_t row, std::int64_t column) {
  const float* weights = c.weights + column * c.inputs;
  const float* x = c.x + row * c.x_stride;
  Vector sums[rows][kStripVectors];
  for (int v = 0; v < kStripVectors; v++) {
    const Vector bias = Vector::load(c.bias + column + v * kWidth);
    for (int r = 0; r < rows; r++) sums[r][v] = bias;
  }
  for (std::int64_t k = 0; k < c.inputs; k++) {
    Vector w[kStripVectors];
    for (int v = 0; v < kStripVectors; v++) w[v] = Vector::load(weights + k * kStrip + v * kWidth);
    for (int r = 0; r < rows; r++) {
      const Vector factor = Vector::all(x[r * c.x_stride + k]);
      for (int v = 0; v < kStripVectors; v++) sums[r][v] = sums[r][v].plus_product(factor, w[v]);
    }
  }
  RELAKIT_UNROLL
  for (int r = 0; r < rows; r++) {
    RELAKIT_UNROLL
    for (int v = 0; v < kStripVectors; v++) finish(c, sums[r][v], row + r, column + v * kWidth);
  }
}

// The same for `vectors` vectors of outputs, which need not be a whole strip.
template <int rows, int vectors>
void byte_tile(const LinearCall& c, std::int64_t row, std::int64_t column) {
  const std::int64_t first = column % kStrip;
  const std::int8_t* weights = c.byte_weights + (column - first) * c.inputs + first * 4;
  const std::uint8_t* x = c.byte_x + row * c.x_stride;
  ByteSums sums[rows][vectors];
  RELAKIT_UNROLL
  for (int r = 0; r < rows; r++) {
    RELAKIT_UNROLL
    for (int v = 0; v < vectors; v++) sums[r][v] = ByteSums::zero();
  }
  for (std::int64_t k = 0; k < c.inputs; k += ByteSums::inputs) {
    ByteSums::Weights w[vectors];
    for (int v = 0; v < vectors; v++) {
      w[v] = ByteSums::Weights::load(weights + k * kStrip + v * kWidth * 4, kStrip * 4);
    }
    RELAKIT_UNROLL
    for (int r = 0; r < rows; r++) {
      const ByteSums::Inputs inputs = ByteSums::Inputs::load(x + r * c.x_stride + k);
      RELAKIT_UNROLL
      for (int v = 0; v < vectors; v++) sums[r][v] = sums[r][v].plus_products(inputs, w[v]);
    }
  }
  RELAKIT_UNROLL
  for (int v = 0; v < vectors; v++) {
    const std::int64_t place = column + v * kWidth;
    const Vector scale = Vector::load(c.scales + place), bias = Vector::load(c.bias + place);
    RELAKIT_UNROLL
    for (int r = 0; r < rows; r++) {
      const Vector factor = scale * Vector::all(c.x_scales[row + r]);
      const Vector sum = sums[r][v].minus(c.offsets + place);
      finish(c, bias.plus_product(sum, factor), row + r, place);
    }
  }
}

// As many sums at once as there are registers for, in the shapes that were fastest; the shapes for
// NEON, whose vectors take two registers, were not timed.
constexpr bool kHasManyRegisters = kWidth == 16;
constexpr int kFloatRows = kHasManyRegisters ? 12 : Vector::registers == 1 ? 6 : 5;
constexpr int kByteRows = kHasManyRegisters ? 12 : 8;
constexpr int kByteVectors = kHasManyRegisters ? kStripVectors : 1;

template <int rows>
void tile(const LinearCall& c, std::int64_t row, std::int64_t panel) {
  const std::int64_t end = (panel + 1) * kPanel;
  if (c.byte_weights != nullptr) {
    for (std::int64_t column = panel * kPanel; column < end; column += kByteVectors * kWidth) {
      byte_tile<rows, kByteVectors>(c, row, column);
    }
  } else {
    for (std::int64_t column = panel * kPanel; column < end; column += kStrip) {
      float_tile<rows>(c, row, column);
    }
  }
}

void linear(const LinearCall& c, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; panel++) {
    std::int64_t row = 0;
    if (c.byte_weights != nullptr) {
      for (; row + kByteRows <= c.rows; row += kByteRows) tile<kByteRows>(c, row, panel);
    } else {
      for (; row + kFloatRows <= c.rows; row += kFloatRows) tile<kFloatRows>(c, row, panel);
    }
    for (; row + 4 <= c.rows; row += 4) tile<4>(c, row, panel);
    switch (c.rows - row) {
      case 3: tile<3>(c, row, panel); break;
      case 2: tile<2>(c, row, panel); break;
      case 1: tile<1>(c, row, panel); break;
      default: break;
    }
  }
}

float quantise(const float* x, std::int64_t size, std::uint8_t* quantised, std::int64_t bytes) {
  const Vector zero = Vector::all(0.0f);
  Vector most = zero, not_finite = zero;
  std::int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) {
    const Vector v = Vector::load(x + i);
    most = most.max(v.max(zero - v));
    not_finite = not_finite.plus_product(v, zero);  // 0, or NaN after the first NaN or inf
  }
  float largest = largest_of(most), rest = not_finite.sum();
  for (; i < size; i++) {
    largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    rest += x[i] * 0.0f;
  }
  if (rest != rest || !(127.0f / largest < HUGE_VALF)) {
    for (std::int64_t j = 0; j < bytes; j++) quantised[j] = kByteZero;
    return rest;  // NaN makes outputs NaN; 0, also for the tiniest numbers, leaves the bias
  }
  const float inverse = 127.0f / largest;
  for (std::int64_t j = 0; j < size; j++) {
    // The sum is positive, so truncating it rounds to nearest.
    quantised[j] = static_cast<std::uint8_t>(
        static_cast<std::int32_t>(x[j] * inverse + (kByteZero + 0.5f)));
  }
  for (std::int64_t j = size; j < bytes; j++) quantised[j] = kByteZero;
  return largest / 127.0f;
}

}  // namespace
}  // namespace relakit::translate::RELAKIT_ISA
