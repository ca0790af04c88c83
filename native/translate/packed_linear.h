#pragma once

#include <cstdint>
#include <vector>

#include "translate/kernels.h"
#include "translate/large_memory.h"

namespace relakit::translate {

// A linear layer's weights as the kernels read them: in float32, or in bytes with one scale per output.
class PackedLinear {
 public:
  // `weight` is [outputs, inputs]; `bias` is [outputs], or null for 0. The outputs that pad the last panel
  // are `filling`.
  PackedLinear(const float* weight, const float* bias, std::int64_t outputs, std::int64_t inputs,
               bool in_bytes, float filling);

  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  std::int64_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  bool in_bytes() const { return !byte_weights_.empty(); }
  std::int64_t row_bytes() const { return (inputs_ + 3) / 4 * 4; }

  // A call with everything that depends on the weights filled in.
  LinearCall call() const;

 private:
  void pack_floats(const float* weight);
  void pack_bytes(const float* weight);

  std::int64_t inputs_, outputs_;
  LargeVector<float> weights_;
  LargeVector<std::int8_t> byte_weights_;
  std::vector<float> bias_, scales_;
  std::vector<std::int32_t> offsets_;
};

}  // namespace relakit::translate
