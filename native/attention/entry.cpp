#include "attention/entry.h"

#include <cstddef>
#include <memory>
#include <string>

#include "attention/weights_writer.h"
#include "cpu/dispatch.h"
#include "norm/read_norm.h"
#include "norm/run.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

// What takes no more is kept in bytes of Python's: a tensor takes longer to make than to fill.
constexpr std::int64_t kMostBytes = 4096;
static_assert(offsetof(PyBytesObject, ob_sval) % alignof(std::uint64_t) == 0);

std::int64_t rows_of(const Problem& p) { return p.batch * p.heads * p.queries; }

std::int64_t bytes_of_bits(const Problem& p) { return rows_of(p) * words_per_row(p) * 8; }

std::int64_t bytes_of_number(const Problem& p) { return p.dtype == DType::bf16 ? 2 : 4; }

// Whether to keep one bit per score from forward to backward, which then need not search again: where
// they take no more memory than the tensors of the call, so that memory does not grow with the square
// of the length. relakit.ops.native.operators says the same for compilers.
bool can_keep_bits(const Problem& p) {
  const std::int64_t numbers = (rows_of(p) + p.batch * p.key_heads * p.keys) * (p.dim + p.value_dim);
  return bytes_of_bits(p) <= numbers * bytes_of_number(p);
}

enum class Form { none, dense, sparse };

std::optional<Form> read_form(nb::handle weights) {
  if (weights.is_none() || weights.ptr() == Py_False) return Form::none;
  if (weights.ptr() == Py_True) return Form::dense;
  if (!PyUnicode_Check(weights.ptr())) return std::nullopt;
  const auto is = [&](const char* text) {
    return PyUnicode_CompareWithASCIIString(weights.ptr(), text) == 0;
  };
  return is("dense")  ? std::optional<Form>(Form::dense)
         : is("csr") ? std::optional<Form>(Form::sparse)
                     : std::nullopt;
}

bool is_number(nb::handle object) {
  return PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr());
}

// Heads inside positions, as projections have them.
Target place_of_mixed(void* data, const Layout& layout, const Problem& p) {
  const std::int64_t features = p.heads * p.value_dim;
  return layout.positions == 1 ? Target{data, p.queries * features, p.value_dim, features}
                               : Target{data, features, p.value_dim, p.batch * features};
}

norm::Problem norm_problem(const void* mixed, const Layout& layout, const Problem& p, double eps) {
  norm::Problem n;
  n.outer = layout.positions == 1 ? p.batch : p.queries;
  n.rows = layout.positions == 1 ? p.queries : p.batch;
  n.pieces = p.heads;
  n.size = p.value_dim;
  n.is_bfloat16 = p.dtype == DType::bf16;
  n.input = mixed;
  n.strides = {n.rows * p.heads * p.value_dim, p.heads * p.value_dim, p.value_dim};
  n.eps = static_cast<float>(eps);
  return n;
}

// What the autograd function is to know of a call: relakit.ops.native.attention.Options.
nb::object options_of(const CallArguments& arguments, const ReadCall& call, double eps) {
  const Problem& p = call.problem;
  PyObject* options = Py_BuildValue(
      "(OdidKLid)", p.causal ? Py_True : Py_False, call.scale, p.power,
      static_cast<double>(p.dropout), static_cast<unsigned long long>(p.seed),
      static_cast<long long>(arguments.layout.heads), arguments.layout.positions, eps);
  if (options == nullptr) nb::raise_python_error();
  return nb::steal(options);
}

nb::object none_if_null(const nb::object& object) {
  return object.is_valid() ? object : nb::none();
}

}  // namespace

AttentionEntry::AttentionEntry(const nb::dict& parts)
    : torch_(parts), record_(parts["record"]), empty_output_(parts["empty_output"]) {}

// Whether the kernels are named as the backend, or nothing is, here and in the environment.
bool AttentionEntry::may_serve(nb::handle backend) const {
  if (backend.is_none()) return environment("RELAKIT_BACKEND") == nullptr;
  return PyUnicode_Check(backend.ptr()) &&
         PyUnicode_CompareWithASCIIString(backend.ptr(), "native") == 0;
}

bool AttentionEntry::needs_gradients(const CallArguments& arguments, const Wishes& wishes) const {
  if (!torch_.is_grad_enabled()) return false;
  for (int i = 0; i < arguments.count; i++) {
    if (torch_.requires_grad(arguments.tensors[i])) return true;
  }
  for (const nb::handle object : {arguments.threshold, wishes.gain, wishes.gate}) {
    if (!object.is_none() && !is_number(object) && torch_.requires_grad(object)) return true;
  }
  return false;
}

// Memory for the output, invalid if it cannot be written to: [batch, heads, queries, value_dim] like
// the query, or like a projection.
nb::object AttentionEntry::empty_output(const CallArguments& arguments, const Problem& p,
                                        Target& place) const {
  const nb::handle first = arguments.tensors[0];
  nb::object output;
  if (arguments.layout.is_projected()) {
    const std::int64_t features = p.heads * p.value_dim;
    const bool is_batch_first = arguments.layout.positions == 1;
    output = torch_.empty(
        first, {is_batch_first ? p.batch : p.queries, is_batch_first ? p.queries : p.batch, features},
        Torch::Content::as_given);
  } else {
    output = p.dim == p.value_dim ? torch_.empty_like(first)
                                  : empty_output_(first, arguments.tensors[2]);
  }
  auto view = torch_.view(output);
  if (!arguments.layout.is_projected() && view && view->strides[3] != 1 && p.value_dim > 1) {
    output = empty_output_(first, arguments.tensors[2]);  // rows of the query overlap
    view = torch_.view(output);
  }
  if (!view) return nb::object();
  place = arguments.layout.is_projected() ? place_of_mixed(view->data, arguments.layout, p)
                                          : place_of<Target>(*view);
  return output;
}

// Memory for what backward needs: bytes if it is little, else a tensor. Invalid if there is none.
nb::object AttentionEntry::kept_memory(nb::handle like, Torch::Shape shape, std::int64_t bytes,
                                       void*& data, bool always_tensor) const {
  if (bytes <= kMostBytes && !always_tensor) {
    nb::object kept = nb::steal(PyBytes_FromStringAndSize(nullptr, bytes));
    if (!kept.is_valid()) nb::raise_python_error();
    data = PyBytes_AS_STRING(kept.ptr());
    return kept;
  }
  const bool are_words = shape.size() == 4;
  nb::object kept =
      torch_.empty(like, shape, are_words ? Torch::Content::int64 : Torch::Content::float32);
  const auto view = torch_.view(kept);
  data = view ? view->data : nullptr;
  return view ? kept : nb::object();
}

// Such memory again, if it is of so many bytes; None gives a null pointer.
bool AttentionEntry::read_kept(nb::handle kept, std::int64_t bytes, const void*& data) const {
  if (kept.is_none()) return true;
  if (PyBytes_CheckExact(kept.ptr())) {
    data = PyBytes_AS_STRING(kept.ptr());
    return PyBytes_GET_SIZE(kept.ptr()) == bytes;
  }
  const auto view = torch_.read(kept);
  if (!view || !dlpack::is_contiguous(*view)) return false;
  std::int64_t size = view->dtype.bits / 8;
  for (int i = 0; i < view->dims; i++) size *= view->shape[i];
  data = view->data;
  return size == bytes;
}

nb::object AttentionEntry::sparse_weights(nb::handle like, const SparseWeights& weights,
                                          const Problem& p) const {
  const nb::object starts = torch_.empty(like, {rows_of(p) + 1}, Torch::Content::int64);
  const nb::object columns = torch_.empty(like, {weights.size()}, Torch::Content::int64);
  const nb::object numbers = torch_.empty(like, {weights.size()}, Torch::Content::float32);
  const auto a = torch_.view(starts), b = torch_.view(columns), c = torch_.view(numbers);
  if (!a || !b || !c) return nb::object();
  weights.write(static_cast<std::int64_t*>(a->data), static_cast<std::int64_t*>(b->data),
                static_cast<float*>(c->data));
  return nb::make_tuple(starts, columns, numbers, rows_of(p), p.keys);
}

nb::object AttentionEntry::forward(const CallArguments& arguments, const Wishes& wishes) const {
  const bool is_operator = arguments.is_trusted;
  if (!is_operator && (!may_serve(wishes.backend) || torch_.is_autocast_enabled() ||
                       !torch_.is_plain())) {
    return nb::none();
  }
  ReadCall call;
  if (!read_call(torch_, arguments, call)) return nb::none();
  Problem& p = call.problem;
  const bool has_norm = !wishes.gain.is_none();
  norm::Call norm;
  if (has_norm && !norm::read_parameters(torch_, wishes.gain, wishes.gate, p.heads * p.value_dim, norm)) {
    return nb::none();
  }
  const bool is_recorded = !is_operator && needs_gradients(arguments, wishes);
  const auto form = read_form(wishes.weights);
  if (!form || (form == Form::sparse && is_recorded)) return nb::none();

  const nb::handle like = arguments.tensors[0];
  ForwardResult result;
  nb::object bits, weights, counts, sums, mixed, inverse_rms;
  nb::object output = empty_output(arguments, p, result.output);
  if (!output.is_valid()) return nb::none();
  norm::ForwardResult norm_result;
  if (has_norm) {
    mixed = output;
    output = torch_.empty_like(mixed);
    const auto view = torch_.view(output);
    if (!view) return nb::none();
    norm.problem = norm_problem(result.output.data, arguments.layout, p, wishes.eps);
    norm_result.output = view->data;
  }
  void* data = nullptr;
  if (has_norm && is_recorded) {
    const std::int64_t rows = p.batch * p.queries;
    inverse_rms = kept_memory(like, {rows}, rows * 4, data);
    if (!inverse_rms.is_valid()) return nb::none();
    norm_result.inverse_rms = static_cast<float*>(data);
  }
  if (is_operator ? wishes.keep_bits : is_recorded && can_keep_bits(p)) {
    bits = kept_memory(like, {p.batch, p.heads, p.queries, words_per_row(p)}, bytes_of_bits(p), data,
                       is_operator);
    if (!bits.is_valid()) return nb::none();
    result.bits = static_cast<std::uint64_t*>(data);
  }
  if (wishes.statistics.ptr() == Py_True) {
    counts = torch_.empty(like, {p.batch, p.heads, p.queries}, Torch::Content::int32);
    sums = torch_.empty(like, {p.batch, p.heads, p.queries}, Torch::Content::float32);
    const auto counts_view = torch_.view(counts), sums_view = torch_.view(sums);
    if (!counts_view || !sums_view) return nb::none();
    result.row_counts = static_cast<std::int32_t*>(counts_view->data);
    result.row_sums = static_cast<float*>(sums_view->data);
  }
  std::unique_ptr<WeightsWriter> writer;
  if (form == Form::dense) {
    weights = torch_.zeros(like, {p.batch, p.heads, p.queries, p.keys});
    const auto view = torch_.view(weights);
    if (!view) return nb::none();
    writer = std::make_unique<DenseWeights>(view->data, p.dtype, p.keys);
  } else if (form == Form::sparse) {
    writer = std::make_unique<SparseWeights>(rows_of(p));
  }
  result.writer = writer.get();
  if (call.needs_seed) p.seed = torch_.draw_seed();  // last: only for a call that is served
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    call.kernels->forward(p, result, threads);
    if (has_norm) norm::run_forward(call.kernels->isa, threads, norm, norm_result);
  }
  if (form == Form::sparse) {
    weights = sparse_weights(like, static_cast<const SparseWeights&>(*writer), p);
    if (!weights.is_valid()) return nb::none();
  }
  if (is_recorded) {
    const nb::object computed = nb::make_tuple(output, none_if_null(weights));
    const nb::object kept =
        nb::make_tuple(none_if_null(mixed), none_if_null(inverse_rms), none_if_null(bits));
    const nb::object options = options_of(arguments, call, wishes.eps);
    PyObject* inputs[10] = {computed.ptr(),      kept.ptr(),        options.ptr(),
                            arguments.mask.ptr(), arguments.threshold.ptr(), wishes.gain.ptr(),
                            wishes.gate.ptr()};
    for (int i = 0; i < arguments.count; i++) inputs[7 + i] = arguments.tensors[i].ptr();
    PyObject* recorded = PyObject_Vectorcall(
        record_.ptr(), inputs, static_cast<std::size_t>(7 + arguments.count), nullptr);
    if (recorded == nullptr) nb::raise_python_error();
    output = nb::steal(recorded);
    if (weights.is_valid()) {
      const nb::object both = output;
      output = both[0];
      weights = both[1];
    }
  }
  if (is_operator) return nb::make_tuple(output, none_if_null(bits));
  if (!weights.is_valid() && !counts.is_valid()) return output;
  return nb::make_tuple(output, none_if_null(weights), none_if_null(counts), none_if_null(sums));
}

// Contiguous gradients, each like one of the tensors.
struct AttentionEntry::Gradients {
  nb::object tensors[3];
};

bool AttentionEntry::empty_gradients(const CallArguments& arguments, const Problem& p,
                                     Gradients& gradients, BackwardResult& result) const {
  dlpack::Tensor views[3];
  for (int i = 0; i < arguments.count; i++) {
    const nb::handle tensor = arguments.tensors[i];
    const auto like = torch_.view(tensor);
    gradients.tensors[i] = like && dlpack::is_contiguous(*like) ? torch_.empty_like(tensor)
                                                        : torch_.contiguous_empty_like(tensor);
    const auto view = torch_.view(gradients.tensors[i]);
    if (!view) return false;
    views[i] = *view;
  }
  if (!arguments.layout.is_projected()) {
    result.grad_query = place_of<Target>(views[0]);
    result.grad_key = place_of<Target>(views[1]);
    result.grad_value = place_of<Target>(views[2]);
    return true;
  }
  const std::int64_t features = p.heads * p.dim;
  const auto place = [&](int tensor, std::int64_t part) {
    return place_in<Target>(views[tensor], arguments.layout, p.dtype, part * features, p.dim);
  };
  const int count = arguments.count;
  result.grad_query = place(0, 0);
  result.grad_key = count == 1 ? place(0, 1) : place(1, 0);
  result.grad_value = count == 1 ? place(0, 2) : count == 2 ? place(1, 1) : place(2, 0);
  return true;
}

nb::object AttentionEntry::backward(const CallArguments& arguments, nb::handle grad_output,
                                    const Kept& kept, const Wishes& wishes) const {
  if (!arguments.is_trusted && (torch_.is_grad_enabled() || !torch_.is_plain())) return nb::none();
  ReadCall call;
  if (!read_call(torch_, arguments, call)) return nb::none();
  const Problem& p = call.problem;

  nb::object upstream = nb::borrow(grad_output);
  const auto read_upstream = [&] {
    return arguments.is_trusted ? torch_.view(upstream) : torch_.read(upstream);
  };
  auto read = read_upstream();
  if (read && read->dims > 0 && read->strides[read->dims - 1] != 1) {
    upstream = upstream.attr("contiguous")();
    read = read_upstream();
  }
  if (!read || dtype_of(*read) != p.dtype) return nb::none();
  const bool is_batch_first = arguments.layout.positions == 1;
  const bool does_fit =
      arguments.layout.is_projected()
          ? dlpack::has_shape(*read, {is_batch_first ? p.batch : p.queries,
                              is_batch_first ? p.queries : p.batch, p.heads * p.value_dim})
          : dlpack::has_shape(*read, {p.batch, p.heads, p.queries, p.value_dim});
  if (!does_fit) return nb::none();
  BackwardResult result;
  result.grad_output =
      arguments.layout.is_projected()
          ? place_in<View>(*read, arguments.layout, p.dtype, 0, p.value_dim)
          : place_of<View>(*read);
  const void* data = nullptr;
  if (!read_kept(kept.bits, bytes_of_bits(p), data)) return nb::none();
  result.bits = static_cast<const std::uint64_t*>(data);
  Gradients gradients;
  if (!empty_gradients(arguments, p, gradients, result)) return nb::none();

  const bool has_norm = !wishes.gain.is_none();
  norm::Call norm;
  norm::BackwardResult norm_result;
  norm::Parameter to_gain, to_gate;
  nb::object grad_gain = nb::none(), grad_gate = nb::none(), grad_rows = nb::none();
  std::unique_ptr<char[]> grad_mixed;
  if (has_norm) {
    const auto z = torch_.read(kept.mixed);
    if (!z || dtype_of(*z) != p.dtype || !dlpack::is_contiguous(*z) || z->dims != 3 ||
        z->shape[0] * z->shape[1] * z->shape[2] != p.batch * p.queries * p.heads * p.value_dim ||
        !norm::read_parameters(torch_, wishes.gain, wishes.gate, p.heads * p.value_dim, norm)) {
      return nb::none();
    }
    const void* inverse_rms = nullptr;
    if (!read_kept(kept.inverse_rms, p.batch * p.queries * 4, inverse_rms)) {
      return nb::none();
    }
    norm.problem = norm_problem(z->data, arguments.layout, p, wishes.eps);
    norm_result.inverse_rms = static_cast<const float*>(inverse_rms);
    norm_result.grad_output = read->data;
    norm_result.grad_output_strides = {read->strides[0], read->strides[1], p.value_dim};
    // Not made by make_unique, which would fill it with zeros.
    grad_mixed.reset(new char[static_cast<std::size_t>(p.batch * p.queries * p.heads * p.value_dim *
                                                       bytes_of_number(p))]);
    norm_result.grad_input = grad_mixed.get();
    norm_result.grad_input_strides = norm.problem.strides;
    const Target place = place_of_mixed(grad_mixed.get(), arguments.layout, p);
    result.grad_output = {place.data, place.batch, place.head, place.row};
    grad_gain = torch_.empty_like(wishes.gain);
    const auto gain_view = torch_.view(grad_gain);
    if (!gain_view) return nb::none();
    to_gain = {gain_view->data, norm.gain.is_bfloat16};
    if (!wishes.gate.is_none()) {
      grad_gate = torch_.empty_like(wishes.gate);
      const auto gate_view = torch_.view(grad_gate);
      if (!gate_view) return nb::none();
      to_gate = {gate_view->data, norm.gate.is_bfloat16};
    }
  }
  if (wishes.threshold_gradient) {
    grad_rows = torch_.empty(arguments.tensors[0], {p.batch, p.heads, p.queries},
                             Torch::Content::float32);
    const auto view = torch_.view(grad_rows);
    if (!view) return nb::none();
    result.grad_rows = static_cast<float*>(view->data);
  }
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    if (has_norm) {
      norm::run_backward(call.kernels->isa, threads, norm, norm_result, to_gain, to_gate);
    }
    call.kernels->backward(p, result, threads);
  }
  const nb::object all = nb::steal(PyTuple_New(7 + arguments.count));
  if (!all.is_valid()) nb::raise_python_error();
  const nb::object nothing = nb::none();
  const nb::object head[] = {nothing, nothing, nothing, nothing, grad_rows, grad_gain, grad_gate};
  for (int i = 0; i < 7 + arguments.count; i++) {
    nb::object gradient = i < 7 ? head[i] : gradients.tensors[i - 7];
    PyTuple_SET_ITEM(all.ptr(), i, gradient.release().ptr());
  }
  return all;
}

}  // namespace relakit::attention
