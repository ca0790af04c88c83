#include "translate/packed_linear.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "translate/buffers.h"

namespace relakit::translate {

namespace {

// The largest sum of positive or of negative weights, among the groups that kernels add in 16 bits.
std::int32_t largest_sum(const std::vector<std::int8_t>& bytes) {
  std::int32_t largest = 0;
  for (std::size_t first = 0; first < bytes.size(); first += kByteStep) {
    for (std::size_t lane : {0, 2}) {
      std::int32_t positive = 0, negative = 0;
      for (std::size_t k : {lane, lane + 1, lane + 4, lane + 5}) {
        positive += std::max<std::int32_t>(bytes[first + k], 0);
        negative += std::max<std::int32_t>(-bytes[first + k], 0);
      }
      largest = std::max({largest, positive, negative});
    }
  }
  return largest;
}

// Rounds the weights of an output to bytes. Returns the value of a byte of 1, or NaN if a weight is
// not finite.
float round_to_bytes(const float* row, std::int64_t inputs, const Layout& layout,
                     std::vector<std::int8_t>& bytes) {
  float largest = 0.0f;
  for (std::int64_t k = 0; k < inputs; k++) {
    if (!std::isfinite(row[k])) return NAN;
    largest = std::max(largest, std::fabs(row[k]));
  }
  if (!(127.0f / largest < HUGE_VALF)) {
    std::fill(bytes.begin(), bytes.end(), std::int8_t{0});
    return 0.0f;
  }
  // Smaller rounding steps are more exact, so the steps are as small as the sums allow.
  constexpr std::int32_t kLargestSum = 32767 / kLargestByte;
  for (float scale = 127.0f / largest;;) {
    for (std::int64_t k = 0; k < inputs; k++) {
      bytes[as_index(k)] = static_cast<std::int8_t>(std::lrintf(row[k] * scale));
    }
    const std::int32_t sum = layout.adds_in_16_bits ? largest_sum(bytes) : 0;
    if (sum <= kLargestSum) return 1.0f / scale;
    scale *= static_cast<float>(kLargestSum) / static_cast<float>(sum);
  }
}

}  // namespace

PackedLinear::PackedLinear(const Layout& layout, const float* weight, const float* bias,
                           std::int64_t outputs, std::int64_t inputs, bool in_bytes, float filling)
    : layout_(layout), inputs_(inputs), outputs_(outputs) {
  bias_.assign(as_index(panels() * kPanel), filling);
  for (std::int64_t i = 0; i < outputs; i++) bias_[as_index(i)] = bias == nullptr ? 0.0f : bias[i];
  if (in_bytes) {
    pack_bytes(weight);
  } else {
    pack_floats(weight);
  }
}

namespace {

// Copies some outputs from one layer to another. Each output has `size` entries per input, and
// outputs lie in strips of `strip`.
template <class Entries>
void copy_outputs(const Entries& from, const std::vector<std::int64_t>& outputs,
                  std::int64_t strip, std::int64_t inputs, std::int64_t size, Entries& to) {
  for (std::size_t i = 0; i < outputs.size(); i++) {
    const auto place = static_cast<std::int64_t>(i);
    const auto* source =
        from.data() + (outputs[i] / strip * inputs * strip + outputs[i] % strip) * size;
    auto* target = to.data() + (place / strip * inputs * strip + place % strip) * size;
    for (std::int64_t k = 0; k < inputs; k++) {
      std::copy(source + k * strip * size, source + (k * strip + 1) * size,
                target + k * strip * size);
    }
  }
}

}  // namespace

PackedLinear::PackedLinear(const PackedLinear& whole, const std::vector<std::int64_t>& outputs,
                           float filling)
    : layout_(whole.layout_),
      inputs_(whole.inputs_),
      outputs_(static_cast<std::int64_t>(outputs.size())) {
  const auto columns = as_index(panels() * kPanel);
  bias_.assign(columns, filling);
  for (std::size_t i = 0; i < outputs.size(); i++) bias_[i] = whole.bias_[as_index(outputs[i])];
  if (!whole.in_bytes()) {
    weights_.assign(columns * as_index(inputs_), 0.0f);
    copy_outputs(whole.weights_, outputs, layout_.strip, inputs_, 1, weights_);
    return;
  }
  scales_.assign(columns, 0.0f);
  offsets_.assign(columns, 0);
  byte_weights_.assign(columns * as_index(row_bytes()), 0);
  copy_outputs(whole.byte_weights_, outputs, layout_.strip, row_bytes() / 4, 4, byte_weights_);
  for (std::size_t i = 0; i < outputs.size(); i++) {
    scales_[i] = whole.scales_[as_index(outputs[i])];
    offsets_[i] = whole.offsets_[as_index(outputs[i])];
  }
}

void PackedLinear::pack_floats(const float* weight) {
  const std::int64_t strip = layout_.strip;
  weights_.assign(as_index(panels() * inputs_ * kPanel), 0.0f);
  for (std::int64_t output = 0; output < outputs_; output++) {
    float* column = weights_.data() + output / strip * inputs_ * strip + output % strip;
    for (std::int64_t k = 0; k < inputs_; k++) column[k * strip] = weight[output * inputs_ + k];
  }
}

void PackedLinear::pack_bytes(const float* weight) {
  constexpr std::int64_t kMostInputs = 65536;  // 255 * 127 times this many fit into 32 bits
  if (inputs_ > kMostInputs) {
    throw std::invalid_argument("a layer has " + std::to_string(inputs_) + " inputs: in int8 " +
                                std::to_string(kMostInputs) + " is the most; use fp32");
  }
  const std::int64_t strip = layout_.strip;
  const auto columns = as_index(panels() * kPanel);
  scales_.assign(columns, 0.0f);
  offsets_.assign(columns, 0);
  byte_weights_.assign(columns * as_index(row_bytes()), 0);
  std::vector<std::int8_t> bytes(as_index(row_bytes()));
  for (std::int64_t output = 0; output < outputs_; output++) {
    const float value = round_to_bytes(weight + output * inputs_, inputs_, layout_, bytes);
    scales_[as_index(output)] = value;
    if (std::isnan(value)) continue;  // outputs are NaN too, as they are or may be in float32
    std::int8_t* column =
        byte_weights_.data() + output / strip * row_bytes() * strip + output % strip * 4;
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < inputs_; k++) {
      column[k / 4 * 4 * strip + k % 4] = bytes[as_index(k)];
      sum += bytes[as_index(k)];
    }
    offsets_[as_index(output)] = kByteZero * sum;
  }
}

LinearCall PackedLinear::call() const {
  LinearCall c;
  c.bias = bias_.data();
  if (in_bytes()) {
    c.inputs = row_bytes();
    c.byte_weights = byte_weights_.data();
    c.scales = scales_.data();
    c.offsets = offsets_.data();
  } else {
    c.inputs = inputs_;
    c.weights = weights_.data();
  }
  return c;
}

}  // namespace relakit::translate
