#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>

#include "attention/read_call.h"
#include "norm/problem.h"
#include "torch/torch.h"

// Sizes and memory that forward and backward must agree on.

namespace relakit::attention {

std::int64_t row_count(const Problem& p);  // [batch, heads, queries]
std::int64_t bytes_of_bits(const Problem& p);

// Whether to keep one bit per score from forward to backward, which then need not search again.
// Bits are kept only if they take no more memory than the tensors of the call, so that memory does
// not grow with the square of the length. relakit.ops.native.operators has the same rule for
// compilers.
bool can_keep_bits(const Problem& p);

// The output of attention in the layout of a projection, where each position holds all heads.
std::array<std::int64_t, 3> shape_of_mixed(const Layout& layout, const Problem& p);
Target place_of_mixed(void* data, const Layout& layout, const Problem& p);
// The norm of that output.
norm::Problem norm_problem(const void* mixed, const Layout& layout, const Problem& p, double eps);

// Allocates memory that outlives forward: Python bytes if it is small, otherwise a tensor. Returns
// an invalid object on failure.
nanobind::object new_kept(const Torch& torch, nanobind::handle like, Torch::Shape shape,
                          Torch::Content content, std::int64_t bytes, void*& data);
// The same, but always as a tensor.
nanobind::object new_tensor(const Torch& torch, nanobind::handle like, Torch::Shape shape,
                            Torch::Content content, void*& data);
// Reads such memory back. False if its size is not `bytes`. None gives a null pointer.
bool read_kept(const Torch& torch, nanobind::handle kept, std::int64_t bytes, const void*& data);

}  // namespace relakit::attention
