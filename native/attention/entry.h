#pragma once

#include <nanobind/nanobind.h>

#include "attention/read_call.h"
#include "torch/torch.h"

// Attention on Python's tensors, from the checks to the result: the one road from Python to the kernels.
// Checks and allocations in Python would take longer than the kernels take for a few dozen positions.

namespace relakit::attention {

// What the extension knows of torch, and of relakit's Python.
struct Entry {
  // `parts` come from relakit.ops.native.connection; KeyError if one is missing.
  explicit Entry(const nanobind::dict& parts);

  Torch torch;
  nanobind::object record;        // the autograd function's apply
  nanobind::object empty_output;  // if values have other features than queries, or rows of the query overlap
};

// The norm that follows, as Python gives it: a gain of None means that there is none.
struct NormArguments {
  nanobind::handle gain = nanobind::handle(Py_None), gate = nanobind::handle(Py_None);
  double eps = 0.0;

  bool is_given() const { return !gain.is_none(); }
};

// What else is wanted of a forward pass, as Python gives it.
struct Wishes {
  nanobind::handle weights = nanobind::handle(Py_None);     // True: a matrix; "csr": sparse rows
  nanobind::handle statistics = nanobind::handle(Py_None);  // true: those of the rows
  nanobind::handle backend = nanobind::handle(Py_None);     // None or a name
  bool keep_bits = false;  // for operators; other calls decide themselves
};

// None if the call is not for the kernels. Else the output, recorded by autograd if need be; with weights
// or statistics (output, weights, non-zeros, sums), where sparse weights are (starts, columns, numbers,
// rows, keys); for an operator (output, bits or None).
nanobind::object forward(const Entry& entry, const CallArguments& arguments,
                         const NormArguments& norm, const Wishes& wishes);

// What backward needs of forward: tensors, bytes if they are few, or None.
struct Kept {
  nanobind::handle mixed;        // the norm's input
  nanobind::handle inverse_rms;  // of each of its rows
  nanobind::handle bits;         // one for each score
};

// None if the gradients are not for the kernels. Else one for each argument of the autograd function. For
// the threshold, if wanted, it is the gradient of each row's scores, still to be summed and negated.
nanobind::object backward(const Entry& entry, const CallArguments& arguments,
                          const NormArguments& norm, const Kept& kept,
                          nanobind::handle grad_output, bool wants_threshold);

}  // namespace relakit::attention
