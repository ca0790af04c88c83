#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "attention/read_call.h"
#include "torch/torch.h"

namespace relakit::attention {

// Attention on Python's tensors, from the checks to the result: the one way from Python to the kernels.
// Checks and allocations in Python would take longer than the kernels take for a few dozen positions.
class AttentionEntry {
 public:
  // `parts` come from relakit.ops.native.connection; KeyError if one is missing.
  explicit AttentionEntry(const nanobind::dict& parts);

  const Torch& torch() const { return torch_; }

  // What else is wanted of a call, as Python gives it.
  struct Wishes {
    nanobind::handle weights = nanobind::handle(Py_None);     // True: a matrix; "csr": sparse rows
    nanobind::handle statistics = nanobind::handle(Py_None);  // True: of the rows
    nanobind::handle backend = nanobind::handle(Py_None);     // None or a name
    nanobind::handle gain = nanobind::handle(Py_None);        // of the norm that follows
    nanobind::handle gate = nanobind::handle(Py_None);
    double eps = 0.0;
    bool keep_bits = false;           // of operators alone; other calls decide themselves
    bool threshold_gradient = false;  // of backward
  };

  // What backward needs of forward: tensors, bytes if they are few, or None.
  struct Kept {
    nanobind::handle mixed, inverse_rms, bits;
  };

  // None if the call is not for the kernels. Else the output, recorded by autograd where it should be;
  // if weights or statistics are wanted, (output, weights, non-zeros, sums), with sparse weights as
  // (starts, columns, numbers, rows, keys); for an operator (output, bits or None).
  nanobind::object forward(const CallArguments& arguments, const Wishes& wishes) const;

  // None if the gradients are not for the kernels. Else one for each argument of the autograd function;
  // for the threshold it is the gradient of each row's scores, still to be summed and negated.
  nanobind::object backward(const CallArguments& arguments, nanobind::handle grad_output,
                            const Kept& kept, const Wishes& wishes) const;

 private:
  struct Gradients;

  bool may_serve(nanobind::handle backend) const;
  bool needs_gradients(const CallArguments& arguments, const Wishes& wishes) const;
  nanobind::object empty_output(const CallArguments& arguments, const Problem& problem,
                                Target& place) const;
  nanobind::object kept_memory(nanobind::handle like, Torch::Shape shape, std::int64_t bytes,
                               void*& data, bool always_tensor = false) const;
  bool read_kept(nanobind::handle kept, std::int64_t bytes, const void*& data) const;
  bool empty_gradients(const CallArguments& arguments, const Problem& problem,
                       Gradients& gradients, BackwardResult& result) const;
  nanobind::object sparse_weights(nanobind::handle like, const class SparseWeights& weights,
                                  const Problem& problem) const;

  Torch torch_;
  nanobind::object record_;        // the autograd function's apply
  nanobind::object empty_output_;  // for values with another number of features than queries
};

}  // namespace relakit::attention
