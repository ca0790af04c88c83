#pragma once

#include <nanobind/nanobind.h>

#include "torch/torch.h"

namespace relakit::simplex {

// Sparsemax and 1.5-entmax of a tensor of scores, on Python tensors. Autograd is relakit's
// (src/relakit/ops/native/simplex.py).
class SimplexEntry {
 public:
  explicit SimplexEntry(const Torch& torch) : torch_(torch) {}  // `torch` must outlive this

  // The weights. Returns None if the kernels do not serve the call: they take contiguous float32
  // tensors.
  nanobind::object forward(nanobind::handle scores, bool is_squared) const;

  // The gradient of the scores, or None in the same cases.
  nanobind::object backward(nanobind::handle grad_weights, nanobind::handle weights,
                            bool is_squared) const;

 private:
  const Torch& torch_;
};

}  // namespace relakit::simplex
