#pragma once

#include <nanobind/nanobind.h>

#include "attention/read_call.h"
#include "torch/torch.h"

// Attention on Python tensors, from the checks to the result: the only way from Python to the
// kernels. Checks and allocations in Python would take longer than the kernels take for a few dozen
// positions.

namespace relakit::attention {

// What the extension needs from torch and from relakit's Python code.
struct Entry {
  // `parts` come from relakit.ops.native.connection; KeyError if one is missing.
  explicit Entry(const nanobind::dict& parts);

  Torch torch;
  nanobind::object record;        // the autograd function's apply
  nanobind::object empty_output;  // for value_dim != dim, or if rows of the query overlap
};

// The norm that follows attention, as Python passes it. If the gain is None, there is no norm.
struct NormArguments {
  nanobind::handle gain = nanobind::handle(Py_None), gate = nanobind::handle(Py_None);
  double eps = 0.0;

  bool is_given() const { return !gain.is_none(); }
};

// Further options of a forward pass, as Python passes them.
struct Wishes {
  nanobind::handle weights = nanobind::handle(Py_None);     // True: a matrix; "csr": sparse rows
  nanobind::handle statistics = nanobind::handle(Py_None);  // true: statistics of each row
  nanobind::handle backend = nanobind::handle(Py_None);     // None or a name
  bool keep_bits = false;  // for operators; other calls decide for themselves
};

// Returns None if the kernels do not serve the call, otherwise the output, recorded by autograd if
// needed. With weights or statistics, it returns (output, weights, non-zeros, sums), where sparse
// weights are (starts, columns, numbers, rows, keys). For an operator, it returns (output, bits or
// None).
nanobind::object forward(const Entry& entry, const CallArguments& arguments,
                         const NormArguments& norm, const Wishes& wishes);

// What backward needs from forward: tensors, Python bytes if they are small, or None.
struct Kept {
  nanobind::handle mixed;        // the norm's input
  nanobind::handle inverse_rms;  // one per row of that input
  nanobind::handle bits;         // one per score
};

// Returns None if the kernels do not serve the call, otherwise one gradient per argument of the
// autograd function. For the threshold, if wanted, this is the gradient of each row's scores, which
// the caller still has to sum and negate.
nanobind::object backward(const Entry& entry, const CallArguments& arguments,
                          const NormArguments& norm, const Kept& kept,
                          nanobind::handle grad_output, bool wants_threshold);

}  // namespace relakit::attention
