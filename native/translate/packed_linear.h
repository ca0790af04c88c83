#pragma once

#include <cstdint>
#include <vector>

#include "translate/kept_memory.h"
#include "translate/kernels.h"

namespace relakit::translate {

// The weights of a linear layer as kernels of one layout read them: in float32, or in bytes with
// one scale per output.
class PackedLinear {
 public:
  // `weight` is [outputs, inputs]; `bias` is [outputs], or null for 0. The outputs that pad the
  // last panel are `filling`.
  PackedLinear(const Layout& layout, const float* weight, const float* bias, std::int64_t outputs,
               std::int64_t inputs, bool in_bytes, float filling);
  // Some outputs of a layer, in the given order; each computes the same as in that layer.
  PackedLinear(const PackedLinear& whole, const std::vector<std::int64_t>& outputs, float filling);

  const Layout& layout() const { return layout_; }
  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  std::int64_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  bool in_bytes() const { return !byte_weights_.empty(); }
  std::int64_t row_bytes() const { return (inputs_ + kByteStep - 1) / kByteStep * kByteStep; }

  // A call with everything that depends on the weights filled in.
  LinearCall call() const;

 private:
  void pack_floats(const float* weight);
  void pack_bytes(const float* weight);

  Layout layout_;
  std::int64_t inputs_, outputs_;
  Weights<float> weights_;
  Weights<std::int8_t> byte_weights_;
  std::vector<float> bias_, scales_;
  std::vector<std::int32_t> offsets_;
};

}  // namespace relakit::translate
