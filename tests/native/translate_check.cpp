// What a translator multiplies: linear layers in float32 and in bytes, rounding to bytes, layer norm and the
// sums of exponentials.

#include <algorithm>
#include <cmath>

#include "check.h"
#include "cpu/features.h"
#include "translate/kernels.h"
#include "translate/packed_linear.h"

namespace relakit::check {

namespace {

using translate::kByteStep;
using translate::kByteZero;
using translate::Kernels;
using translate::kPanel;
using translate::LinearCall;
using translate::PackedLinear;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::vector<float> random_numbers(Random& random, std::int64_t count, float most) {
  std::vector<float> numbers(size(count));
  for (float& x : numbers) x = most * random.uniform();
  return numbers;
}

// Inputs in bytes, and the value of a byte of 1 for each row.
struct Bytes {
  std::vector<std::uint8_t> bytes;
  std::vector<float> scales;

  Bytes(const Kernels& kernels, const std::vector<float>& x, std::int64_t rows, std::int64_t inputs)
      : bytes(size(rows * stride(inputs))), scales(size(rows)) {
    for (std::int64_t row = 0; row < rows; row++) {
      scales[size(row)] = kernels.quantise(x.data() + row * inputs, inputs,
                                           bytes.data() + row * stride(inputs), stride(inputs));
    }
  }
  static std::int64_t stride(std::int64_t inputs) {
    return (inputs + kByteStep - 1) / kByteStep * kByteStep;
  }
};

// `count` numbers of one size, whose sign changes after every `period`.
std::vector<float> signs(std::int64_t count, std::int64_t period, float number) {
  std::vector<float> numbers(size(count), number);
  for (std::int64_t i = 0; i < count; i++) {
    if (i / period % 2 == 1) numbers[size(i)] = -number;
  }
  return numbers;
}

struct Layer {
  std::int64_t rows, inputs, outputs;
  bool in_bytes, is_rectified, is_added;
  bool is_extreme = false;  // all weights and inputs are as large as they can be

  std::string name() const {
    return std::string("linear in ") + (in_bytes ? "bytes" : "float32") + ", " +
           std::to_string(rows) + " x " + std::to_string(inputs) + " x " + std::to_string(outputs);
  }
};

// A layer with its numbers.
struct Linear {
  Layer layer;
  std::int64_t stride;
  std::vector<float> weight, bias, x, added;
  PackedLinear packed;

  Linear(const Layer& wanted, const Kernels& kernels, Random& random)
      : layer(wanted),
        stride((wanted.outputs + kPanel - 1) / kPanel * kPanel),
        weight(wanted.is_extreme ? signs(wanted.outputs * wanted.inputs, wanted.inputs, 0.5f)
                                 : random_numbers(random, wanted.outputs * wanted.inputs, 0.5f)),
        bias(random_numbers(random, wanted.outputs, 1.0f)),
        x(wanted.is_extreme ? signs(wanted.rows * wanted.inputs, 2 * wanted.inputs, 3.0f)
                            : random_numbers(random, wanted.rows * wanted.inputs, 3.0f)),
        added(random_numbers(random, wanted.rows * stride, 1.0f)),
        packed(kernels.layout, weight.data(), bias.data(), wanted.outputs, wanted.inputs,
               wanted.in_bytes, 0.0f) {}

  std::vector<float> run(const Kernels& kernels) const {
    std::vector<float> y(size(layer.rows * stride));
    const Bytes rounded(kernels, x, layer.rows, layer.inputs);
    LinearCall call = packed.call();
    call.rows = layer.rows;
    call.x = x.data();
    call.x_stride = layer.in_bytes ? packed.row_bytes() : layer.inputs;
    call.byte_x = rounded.bytes.data();
    call.x_scales = rounded.scales.data();
    call.y = y.data();
    call.y_stride = stride;
    call.is_rectified = layer.is_rectified;
    call.added = layer.is_added ? added.data() : nullptr;
    call.added_stride = stride;
    kernels.linear(call, 0, packed.panels());
    return y;
  }

  int byte_weight(std::int64_t output, std::int64_t input) const {
    const std::int64_t strip = packed.layout().strip, first = output / strip * strip;
    return packed.call().byte_weights[first * packed.row_bytes() + input / 4 * 4 * strip +
                                      output % strip * 4 + input % 4];
  }

  // In float64; with bytes, from whole numbers that the sums of bytes must equal.
  std::vector<double> expected(const Bytes& rounded) const {
    std::vector<double> y(size(layer.rows * stride));
    for (std::int64_t row = 0; row < layer.rows; row++) {
      for (std::int64_t output = 0; output < stride; output++) {
        double sum = output < layer.outputs ? bias[size(output)] : 0.0;
        if (output < layer.outputs) sum += product(rounded, row, output);
        if (layer.is_rectified) sum = std::max(sum, 0.0);
        const std::size_t place = size(row * stride + output);
        y[place] = sum + (layer.is_added ? added[place] : 0.0);
      }
    }
    return y;
  }

 private:
  double product(const Bytes& rounded, std::int64_t row, std::int64_t output) const {
    const float* w = weight.data() + output * layer.inputs;
    double sum = 0.0;
    for (std::int64_t k = 0; k < layer.inputs; k++) {
      if (layer.in_bytes) {
        const int byte = rounded.bytes[size(row * Bytes::stride(layer.inputs) + k)];
        sum += (byte - kByteZero) * byte_weight(output, k);
      } else {
        sum += static_cast<double>(x[size(row * layer.inputs + k)]) * w[k];
      }
    }
    return layer.in_bytes ? sum * packed.call().scales[output] * rounded.scales[size(row)] : sum;
  }
};

// Weights are rounded to the nearest byte, with steps as small as they can be.
void check_rounding_of_weights(const Linear& linear) {
  const Layer& layer = linear.layer;
  for (std::int64_t output = 0; output < layer.outputs; output++) {
    const float* w = linear.weight.data() + output * layer.inputs;
    float largest = 0.0f;
    for (std::int64_t k = 0; k < layer.inputs; k++) largest = std::max(largest, std::fabs(w[k]));
    const float scale = linear.packed.call().scales[output], most = largest / scale;
    for (std::int64_t k = 0; k < layer.inputs; k++) {
      const float byte = static_cast<float>(linear.byte_weight(output, k));
      expect(std::fabs(w[k] / scale - byte) <= 0.501f, "the nearest byte of a weight");
    }
    // Four of them are added up, to 128.
    const float least = linear.packed.layout().adds_in_16_bits ? 31.5f : 126.9f;
    expect(least <= most && most <= 127.1f, "the largest weight in bytes");
  }
}

void check_layer(const std::string& isa, const Layer& layer, Random& random) {
  begin(isa, layer.name());
  const Kernels& kernels = translate::find_kernels(isa);
  const Linear linear(layer, kernels, random);
  if (layer.in_bytes) check_rounding_of_weights(linear);
  const std::vector<float> found = linear.run(kernels);
  const Bytes rounded(kernels, linear.x, layer.rows, layer.inputs);
  const double tolerance = layer.in_bytes ? 1e-6 : 4e-6;  // up to 2048 floats in one sum
  expect_near("output", as_doubles(found), linear.expected(rounded), tolerance);
#if defined(RELAKIT_WITH_NEON)
  if (isa == "neon" && has_cpu_features({"asimddp"})) {
    expect(&kernels == &translate::neon_dotprod_kernels, "dot products of bytes are used");
    expect(linear.run(translate::neon_kernels) == found, "they find what others find");
  }
#endif
#if defined(RELAKIT_EVEX)
  // AVX-VNNI has the same arithmetic, which these checks are built with in the form that AVX-512 has.
  if (isa == "avx2" && has_cpu_features({"avx512vl", "avx512_vnni"})) {
    const Linear other(layer, translate::avx2_vnni_kernels, random);
    if (layer.in_bytes) check_rounding_of_weights(other);
    const Bytes bytes(translate::avx2_vnni_kernels, other.x, layer.rows, layer.inputs);
    expect_near("output of AVX-VNNI", as_doubles(other.run(translate::avx2_vnni_kernels)),
                other.expected(bytes), tolerance);
  }
#endif
}

void check_rounding(const std::string& isa, Random& random) {
  begin(isa, "rounding to bytes");
  const Kernels& kernels = translate::find_kernels(isa);
  for (std::int64_t inputs : {1, 4, 7, 8, 16, 33}) {
    const std::vector<float> x = random_numbers(random, inputs, 5.0f);
    const Bytes rounded(kernels, x, 1, inputs);
    for (std::int64_t k = 0; k < inputs; k++) {
      const double value = rounded.scales[0] * (rounded.bytes[size(k)] - kByteZero);
      expect(std::fabs(value - x[size(k)]) <= 0.501 * rounded.scales[0], "the nearest byte");
    }
    for (std::size_t k = size(inputs); k < rounded.bytes.size(); k++) {
      expect(rounded.bytes[k] == kByteZero, "zeros at the end");
    }
    std::vector<float> zeros(size(inputs)), broken(x);
    expect(Bytes(kernels, zeros, 1, inputs).scales[0] == 0.0f, "zeros stay zeros");
    std::vector<float> tiny(size(inputs), 1e-38f);  // 127 / 1e-38 is too large for a float
    expect(Bytes(kernels, tiny, 1, inputs).scales[0] == 0.0f, "the tiniest numbers are zeros");
    for (float bad : {NAN, HUGE_VALF, -HUGE_VALF}) {
      broken[size(random.between(0, inputs - 1))] = bad;
      expect(std::isnan(Bytes(kernels, broken, 1, inputs).scales[0]), "what is not finite is NaN");
    }
  }
}

void check_layer_norm(const std::string& isa, Random& random) {
  const Kernels& kernels = translate::find_kernels(isa);
  for (std::int64_t count : {1, 3, 8, 15, 16, 40, 64, 65}) {
    begin(isa, "layer norm of " + std::to_string(count));
    const std::vector<float> x = random_numbers(random, count, 2.0f);
    const std::vector<float> gain = random_numbers(random, count, 1.0f);
    const std::vector<float> bias = random_numbers(random, count, 1.0f);
    std::vector<float> y(size(count));
    kernels.layer_norm(x.data(), count, gain.data(), bias.data(), 1e-5f, y.data());
    double mean = 0.0, squares = 0.0;
    for (float number : x) mean += number / static_cast<double>(count);
    for (float number : x) squares += (number - mean) * (number - mean);
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(count) + 1e-5);
    std::vector<double> expected;
    for (std::size_t i = 0; i < x.size(); i++) {
      expected.push_back((x[i] - mean) * scale * gain[i] + bias[i]);
    }
    expect_near("output", as_doubles(y), expected, 2e-6);
  }
}

void check_exponentials(const std::string& isa, Random& random) {
  begin(isa, "sums of exponentials");
  const Kernels& kernels = translate::find_kernels(isa);
  float largest = -HUGE_VALF, sum = 0.0f;
  std::vector<double> all;
  for (float most : {1.0f, 10.0f, 30.0f, 3.0f}) {
    const std::vector<float> logits = random_numbers(random, kPanel, most);
    const float found = kernels.add_exponentials(logits.data(), &largest, &sum);
    expect(found == *std::max_element(logits.begin(), logits.end()), "the largest of a panel");
    all.insert(all.end(), logits.begin(), logits.end());
    double expected = 0.0;
    for (double x : all) expected += std::exp(x - largest);
    expect(largest == static_cast<float>(*std::max_element(all.begin(), all.end())), "the largest");
    expect_near("sum", {sum}, {expected}, 1e-6);
  }
}

}  // namespace

void check_translate(const std::string& isa) {
  Random random(3);
  for (bool in_bytes : {false, true}) {
    for (std::int64_t rows = 1; rows <= 14; rows++) {
      check_layer(isa, {rows, random.between(1, 90), random.between(1, 150), in_bytes, random.coin(),
                        random.coin()}, random);
    }
    check_layer(isa, {25, 512, 100, in_bytes, false, false}, random);
    check_layer(isa, {4, 2048, 64, in_bytes, true, true}, random);
    check_layer(isa, {9, 64, 70, in_bytes, false, false, true}, random);
  }
  check_rounding(isa, random);
  check_layer_norm(isa, random);
  check_exponentials(isa, random);
}

}  // namespace relakit::check
