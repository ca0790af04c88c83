#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "torch/torch.h"
#include "attention/kernels.h"

namespace relakit::attention {

// Attention for calls as they usually are, on Python's tensors, from its checks to its result: in
// Python they would take longer than the kernels take for a few dozen positions. Whatever is unusual
// or wrong gives None; the caller then goes the long way, which also has the messages.
class DirectCalls {
 public:
  explicit DirectCalls(const nanobind::dict& parts);

  bool is_usable() const { return torch_.can_read(); }

  // The output, or (output, bits or None) where autograd is to record the call, or None.
  nanobind::object forward(nanobind::handle query, nanobind::handle key, nanobind::handle value,
                           nanobind::handle mask, nanobind::handle is_causal, nanobind::handle scale,
                           nanobind::handle threshold, nanobind::handle power,
                           nanobind::handle backend) const;

  // Gradients of (query, key, value), or None.
  nanobind::object backward(nanobind::handle grad_output, nanobind::handle query,
                            nanobind::handle key, nanobind::handle value, nanobind::handle mask,
                            nanobind::handle bits, nanobind::handle is_causal,
                            nanobind::handle scale, nanobind::handle threshold,
                            nanobind::handle power) const;

 private:
  struct Tensors {
    nanobind::handle query, key, value, mask;
  };
  struct Options {
    nanobind::handle is_causal, scale, threshold, power;
  };
  // A call that is as it should be. The problem points into it.
  struct Usual {
    Problem problem;
    const Kernels* kernels = nullptr;
    std::vector<float> thresholds;  // of the heads; none: all are 0
  };

  bool check(const Tensors& tensors, const Options& options, Usual& usual) const;
  bool check_mask(nanobind::handle mask, Problem& problem) const;
  bool needs_gradients(const Tensors& tensors) const;
  nanobind::object empty_output(const Tensors& tensors, const Problem& problem) const;
  nanobind::object empty_bits(nanobind::handle query, const Problem& problem,
                              std::uint64_t*& words) const;
  bool check_bits(nanobind::handle bits, const Problem& problem, const std::uint64_t*& words) const;
  nanobind::object empty_gradient(nanobind::handle tensor, void*& data) const;

  Torch torch_;
  nanobind::object empty_output_;  // for values with another number of features than queries
};

void bind_direct_calls(nanobind::module_& m);

}  // namespace relakit::attention
