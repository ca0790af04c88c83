#pragma once

#include <nanobind/nanobind.h>

#include "torch/torch.h"

namespace relakit::norm {

// RMSNorm, gated or not, on Python tensors, for a norm on its own. A norm after attention is run by
// attention's entry.
class NormEntry {
 public:
  // `parts` come from relakit.ops.native.connection; `torch` must outlive this.
  NormEntry(const Torch& torch, const nanobind::dict& parts);

  // x is [..., features], or [..., heads, head features] with feature_dims = 2. Returns None if the
  // kernels do not serve the call, otherwise [..., features], recorded by autograd if needed.
  nanobind::object forward(nanobind::handle x, nanobind::handle gain, nanobind::handle gate,
                           double eps, int feature_dims) const;

  // Returns None if the kernels do not serve the call, otherwise the gradients of x, gain and gate
  // (or None).
  nanobind::object backward(nanobind::handle grad_output, nanobind::handle x, nanobind::handle gain,
                            nanobind::handle gate, nanobind::handle inverse_rms, double eps,
                            int feature_dims) const;

 private:
  const Torch& torch_;
  nanobind::object record_;  // the autograd function's apply
};

}  // namespace relakit::norm
