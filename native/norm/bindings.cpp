#include "norm/bindings.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "norm/run.h"

namespace nb = nanobind;

namespace relakit::norm {

namespace {

using Address = std::uintptr_t;  // Tensor.data_ptr(); relakit.ops.native.norm keeps it alive
using Size = std::int64_t;

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

void make_call(Call* self, Size outer, Size rows, Size pieces, Size size, bool is_bfloat16,
               Address input, Size outer_stride, Size row_stride, Size piece_stride, Address gain,
               bool is_gain_bfloat16, Address gate, bool is_gate_bfloat16, double eps) {
  Problem p;
  p.outer = outer;
  p.rows = rows;
  p.pieces = pieces;
  p.size = size;
  p.is_bfloat16 = is_bfloat16;
  p.input = pointer(input);
  p.strides = {outer_stride, row_stride, piece_stride};
  p.eps = static_cast<float>(eps);
  new (self) Call{p, {pointer(gain), is_gain_bfloat16}, {pointer(gate), is_gate_bfloat16}};
}

void forward(const std::string& isa, int threads, const Call& call, Address output,
             Address inverse_rms) {
  ForwardResult result;
  result.output = pointer(output);
  result.inverse_rms = static_cast<float*>(pointer(inverse_rms));
  nb::gil_scoped_release unlocked;
  run_forward(isa, threads, call, result);
}

void backward(const std::string& isa, int threads, const Call& call, Address inverse_rms,
              Address grad_output, Size grad_output_outer_stride, Size grad_output_row_stride,
              Address grad_input, Size grad_input_outer_stride, Size grad_input_row_stride,
              Size grad_input_piece_stride, Address grad_gain, Address grad_gate) {
  BackwardResult result;
  result.inverse_rms = static_cast<const float*>(pointer(inverse_rms));
  result.grad_output = pointer(grad_output);
  result.grad_output_strides = {grad_output_outer_stride, grad_output_row_stride,
                                call.problem.size};
  result.grad_input = pointer(grad_input);
  result.grad_input_strides = {grad_input_outer_stride, grad_input_row_stride,
                               grad_input_piece_stride};
  nb::gil_scoped_release unlocked;
  run_backward(isa, threads, call, result, {pointer(grad_gain), call.gain.is_bfloat16},
               {pointer(grad_gate), call.gate.is_bfloat16});
}

}  // namespace

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi. Arguments are
// positional only: there are many, and looking up names would take as long as a short row does.
void bind(nb::module_& m) {
  nb::class_<Call>(m, "NormCall").def("__init__", &make_call);
  m.def("norm_forward", &forward);
  m.def("norm_backward", &backward);
}

}  // namespace relakit::norm
