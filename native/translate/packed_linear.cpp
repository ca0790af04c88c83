#include "translate/packed_linear.h"

#include <algorithm>
#include <cmath>

namespace relakit::translate {

PackedLinear::PackedLinear(const float* weight, const float* bias, std::int64_t outputs,
                           std::int64_t inputs, bool in_bytes, float filling)
    : inputs_(inputs), outputs_(outputs) {
  bias_.assign(static_cast<std::size_t>(panels() * kPanel), filling);
  for (std::int64_t i = 0; i < outputs; i++) {
    bias_[static_cast<std::size_t>(i)] = bias == nullptr ? 0.0f : bias[i];
  }
  if (in_bytes) {
    pack_bytes(weight);
  } else {
    pack_floats(weight);
  }
}

void PackedLinear::pack_floats(const float* weight) {
  weights_.assign(static_cast<std::size_t>(panels() * inputs_ * kPanel), 0.0f);
  for (std::int64_t output = 0; output < outputs_; output++) {
    float* panel = weights_.data() + output / kPanel * inputs_ * kPanel + output % kPanel;
    for (std::int64_t k = 0; k < inputs_; k++) panel[k * kPanel] = weight[output * inputs_ + k];
  }
}

void PackedLinear::pack_bytes(const float* weight) {
  const auto columns = static_cast<std::size_t>(panels() * kPanel);
  scales_.assign(columns, 0.0f);
  offsets_.assign(columns, 0);
  byte_weights_.assign(columns * static_cast<std::size_t>(row_bytes()), 0);
  for (std::int64_t output = 0; output < outputs_; output++) {
    const float* row = weight + output * inputs_;
    float largest = 0.0f;
    bool is_finite = true;
    for (std::int64_t k = 0; k < inputs_; k++) {
      largest = std::max(largest, std::fabs(row[k]));
      is_finite = is_finite && std::isfinite(row[k]);
    }
    if (!is_finite) {  // make the output NaN, as it is or may be in float32
      scales_[static_cast<std::size_t>(output)] = NAN;
      continue;
    }
    const float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    std::int8_t* panel = byte_weights_.data() + output / kPanel * row_bytes() * kPanel +
                         output % kPanel * 4;
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < inputs_; k++) {
      const auto byte = static_cast<std::int8_t>(std::lrintf(row[k] * inverse));
      panel[k / 4 * 4 * kPanel + k % 4] = byte;
      sum += byte;
    }
    scales_[static_cast<std::size_t>(output)] = largest / 127.0f;
    offsets_[static_cast<std::size_t>(output)] = kByteZero * sum;
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
