#include "norm/entry.h"

#include <optional>
#include <string>
#include <vector>

#include "cpu/dispatch.h"
#include "norm/read_norm.h"

namespace nb = nanobind;

namespace relakit::norm {

namespace {

using dlpack::is_bfloat16;
using dlpack::is_float32;

// A tensor's rows as two dimensions, with their strides and the stride of the pieces of a row.
// rows_of returns nothing if the rows cannot be viewed like that, or if features are not
// contiguous.
struct RowsOf {
  std::int64_t outer = 1, rows = 1, pieces = 1, size = 1;
  Strides strides;
};

std::optional<RowsOf> rows_of(const dlpack::Tensor& x, int feature_dims) {
  const int lead = x.dims - feature_dims;
  if (lead < 0 || x.dims < 1) return std::nullopt;
  RowsOf r;
  r.size = x.shape[x.dims - 1];
  if (x.strides[x.dims - 1] != 1 && r.size != 1) return std::nullopt;
  if (feature_dims == 2) {
    r.pieces = x.shape[x.dims - 2];
    r.strides.piece = x.strides[x.dims - 2];
  }
  if (lead == 1 || lead == 2) {
    r.rows = x.shape[lead - 1];
    r.strides.row = x.strides[lead - 1];
    if (lead == 2) {
      r.outer = x.shape[0];
      r.strides.outer = x.strides[0];
    }
    return r;
  }
  // More than two leading dimensions count as one if they are contiguous; none means a single row.
  std::int64_t expected = r.pieces * r.size;
  if (feature_dims == 2 && lead > 0 && r.strides.piece != r.size && r.pieces != 1) return std::nullopt;
  r.strides.row = expected;
  for (int i = lead - 1; i >= 0; i--) {
    if (x.strides[i] != expected && x.shape[i] != 1) return std::nullopt;
    expected *= x.shape[i];
    r.rows *= x.shape[i];
  }
  return r;
}

Problem problem_of(const dlpack::Tensor& x, const RowsOf& r, double eps) {
  Problem p;
  p.outer = r.outer;
  p.rows = r.rows;
  p.pieces = r.pieces;
  p.size = r.size;
  p.is_bfloat16 = is_bfloat16(x);
  p.input = x.data;
  p.strides = r.strides;
  p.eps = static_cast<float>(eps);
  return p;
}

}  // namespace

bool read_parameters(const Torch& torch, nb::handle gain, nb::handle gate, std::int64_t features,
                     Call& call) {
  const auto read = [&](nb::handle object, Parameter& parameter) {
    const auto tensor = torch.read(object);
    if (!tensor || tensor->dims != 1 || tensor->shape[0] != features ||
        (tensor->strides[0] != 1 && features > 1) || (!is_float32(*tensor) && !is_bfloat16(*tensor))) {
      return false;
    }
    parameter = {tensor->data, is_bfloat16(*tensor)};
    return true;
  };
  return read(gain, call.gain) && (gate.is_none() || read(gate, call.gate));
}

NormEntry::NormEntry(const Torch& torch, const nb::dict& parts)
    : torch_(torch), record_(parts["record_norm"]) {}

nb::object NormEntry::forward(nb::handle x, nb::handle gain, nb::handle gate, double eps,
                              int feature_dims) const {
  if (!torch_.is_plain()) return nb::none();
  const auto input = torch_.read(x);
  if (!input || (!is_float32(*input) && !is_bfloat16(*input))) return nb::none();
  const auto rows = rows_of(*input, feature_dims);
  const std::string* isa = isa_outside_attention();
  Call call;
  if (!rows || isa == nullptr || !read_parameters(torch_, gain, gate, rows->pieces * rows->size, call)) {
    return nb::none();
  }
  call.problem = problem_of(*input, *rows, eps);
  const bool is_recorded =
      torch_.is_grad_enabled() && (torch_.requires_grad(x) || torch_.requires_grad(gain) ||
                                   (!gate.is_none() && torch_.requires_grad(gate)));
  std::vector<std::int64_t> shape(input->shape, input->shape + input->dims - feature_dims);
  nb::object inverse_rms;
  if (is_recorded) inverse_rms = torch_.empty(x, shape, Torch::Content::float32);
  shape.push_back(rows->pieces * rows->size);
  const nb::object output = torch_.empty(x, shape, Torch::Content::as_given);
  const auto output_view = torch_.view(output);
  if (!output_view) return nb::none();
  ForwardResult result;
  result.output = output_view->data;
  if (is_recorded) {
    const auto view = torch_.view(inverse_rms);
    if (!view) return nb::none();
    result.inverse_rms = static_cast<float*>(view->data);
  }
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    run_forward(*isa, threads, call, result);
  }
  if (!is_recorded) return output;
  const nb::object computed = nb::make_tuple(output, inverse_rms);
  const nb::object options = nb::make_tuple(eps, feature_dims);
  PyObject* inputs[] = {computed.ptr(), options.ptr(), x.ptr(), gain.ptr(), gate.ptr()};
  return checked(PyObject_Vectorcall(record_.ptr(), inputs, 5, nullptr));
}

nb::object NormEntry::backward(nb::handle grad_output, nb::handle x, nb::handle gain,
                               nb::handle gate, nb::handle inverse_rms, double eps,
                               int feature_dims) const {
  if (torch_.is_grad_enabled() || !torch_.is_plain()) return nb::none();
  const auto input = torch_.read(x), kept = torch_.read(inverse_rms);
  const std::string* isa = isa_outside_attention();
  if (!input || !kept || isa == nullptr || (!is_float32(*input) && !is_bfloat16(*input))) return nb::none();
  const auto rows = rows_of(*input, feature_dims);
  Call call;
  if (!rows || !read_parameters(torch_, gain, gate, rows->pieces * rows->size, call)) {
    return nb::none();
  }
  call.problem = problem_of(*input, *rows, eps);
  nb::object upstream = nb::borrow(grad_output);
  auto read = torch_.read(upstream);
  if (!read) return nb::none();
  if (!rows_of(*read, 1)) {
    upstream = upstream.attr("contiguous")();
    read = torch_.read(upstream);
    if (!read) return nb::none();
  }
  const auto upstream_rows = rows_of(*read, 1);
  const std::int64_t count = rows->outer * rows->rows;
  if (!upstream_rows || read->dtype.code != input->dtype.code ||
      read->dtype.bits != input->dtype.bits || upstream_rows->size != rows->pieces * rows->size ||
      upstream_rows->outer * upstream_rows->rows != count || !is_float32(*kept) || !dlpack::is_contiguous(*kept) ||
      kept->dims != input->dims - feature_dims) {
    return nb::none();
  }
  // In the layout of x, if its features are contiguous there.
  nb::object grad_x = torch_.empty_like(x);
  auto target = torch_.view(grad_x);
  if (target && !rows_of(*target, feature_dims)) {
    grad_x = torch_.contiguous_empty_like(x);
    target = torch_.view(grad_x);
  }
  const nb::object grad_gain = torch_.empty_like(gain);
  const nb::object grad_gate = gate.is_none() ? nb::none() : torch_.empty_like(gate);
  const auto gain_view = torch_.view(grad_gain);
  const auto gate_view = gate.is_none() ? gain_view : torch_.view(grad_gate);
  if (!target || !gain_view || !gate_view) return nb::none();
  BackwardResult result;
  result.inverse_rms = static_cast<const float*>(kept->data);
  result.grad_output = read->data;
  result.grad_output_strides = {upstream_rows->strides.outer, upstream_rows->strides.row, rows->size};
  result.grad_input = target->data;
  result.grad_input_strides = rows_of(*target, feature_dims)->strides;
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    run_backward(*isa, threads, call, result, {gain_view->data, call.gain.is_bfloat16},
                 {gate.is_none() ? nullptr : gate_view->data, call.gate.is_bfloat16});
  }
  return nb::make_tuple(grad_x, grad_gain, grad_gate);
}

}  // namespace relakit::norm
