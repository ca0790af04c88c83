#include "attention/direct.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "cpu/dispatch.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

constexpr std::int64_t kLargestDim = 256;

// Bits that take no more are kept in bytes of Python's: a tensor takes longer to make than to fill.
constexpr std::int64_t kMostBytes = 4096;
static_assert(offsetof(PyBytesObject, ob_sval) % alignof(std::uint64_t) == 0);

// Read from the environment itself, which os.environ keeps up to date: to ask os.environ takes longer
// than everything else here.
const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

// The kernels to use, as extension.choose_isa; null for a name that is not usable.
const Kernels* choose_kernels() {
  static const Kernels* best = &find_kernels(usable_isas().front());
  const char* wanted = variable("RELAKIT_CPU_ISA");
  if (wanted == nullptr || std::strcmp(wanted, best->isa) == 0) return best;
  try {
    return &find_kernels(wanted);
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
}

// Whether the kernels are to be used: they are named as the backend, or nothing is, here and in the
// environment.
bool may_serve(nb::handle backend) {
  if (backend.is_none()) return variable("RELAKIT_BACKEND") == nullptr;
  return PyUnicode_Check(backend.ptr()) &&
         PyUnicode_CompareWithASCIIString(backend.ptr(), "native") == 0;
}

bool is(const dlpack::DataType& dtype, std::uint8_t code, int bits) {
  return dtype.code == code && dtype.bits == bits;
}

std::optional<DType> dtype_of(const dlpack::Tensor& tensor) {
  if (is(tensor.dtype, dlpack::kFloat, 32)) return DType::f32;
  if (is(tensor.dtype, dlpack::kBfloat, 16)) return DType::bf16;
  return std::nullopt;
}

template <class Place>
Place place(const dlpack::Tensor& tensor) {
  return {tensor.data, tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

bool has_rows(const dlpack::Tensor& tensor) { return tensor.dims == 4 && tensor.strides[3] == 1; }

bool has_shape(const dlpack::Tensor& tensor, std::int64_t batch, std::int64_t heads,
               std::int64_t rows, std::int64_t size) {
  const std::int64_t* shape = tensor.shape;
  return shape[0] == batch && shape[1] == heads && shape[2] == rows && shape[3] == size;
}

bool is_contiguous(const dlpack::Tensor& tensor) {
  std::int64_t stride = 1;
  for (int i = tensor.dims - 1; i >= 0; i--) {
    if (tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

bool read_options(nb::handle is_causal, nb::handle scale, nb::handle power, Problem& p) {
  if (!PyBool_Check(is_causal.ptr())) return false;
  p.causal = is_causal.ptr() == Py_True;
  if (scale.is_none()) {
    p.scale = static_cast<float>(std::pow(static_cast<double>(p.dim), -0.5));
  } else if (PyFloat_CheckExact(scale.ptr())) {
    p.scale = static_cast<float>(PyFloat_AS_DOUBLE(scale.ptr()));
  } else {
    return false;
  }
  if (!PyFloat_Check(power.ptr()) && !PyLong_Check(power.ptr())) return false;
  const double number = PyFloat_AsDouble(power.ptr());
  if (number != 1.0 && number != 2.0) {
    PyErr_Clear();  // an integer too large for a double
    return false;
  }
  p.power = static_cast<int>(number);
  return true;
}

std::int64_t bytes_of_bits(const Problem& p) {
  return p.batch * p.heads * p.queries * words_per_row(p) * 8;
}

// As kernel_calls.can_keep_bits has it.
bool can_keep_bits(const Problem& p) {
  const std::int64_t rows = p.batch * p.heads * p.queries;
  const std::int64_t numbers = rows * (p.dim + p.value_dim) +
                               p.batch * p.key_heads * p.keys * (p.dim + p.value_dim);
  return bytes_of_bits(p) <= numbers * (p.dtype == DType::bf16 ? 2 : 4);
}

}  // namespace

DirectCalls::DirectCalls(const nb::dict& parts)
    : torch_(parts), empty_output_(parts["empty_output"]) {}

bool DirectCalls::check(const Tensors& tensors, const Options& options, Usual& usual) const {
  if (!torch_.is_plain()) return false;
  const auto query = torch_.read(tensors.query);
  if (!query || !has_rows(*query)) return false;
  const auto key = torch_.read(tensors.key);
  if (!key || !has_rows(*key)) return false;
  const auto value = torch_.read(tensors.value);
  if (!value || !has_rows(*value)) return false;
  const auto dtype = dtype_of(*query);
  if (!dtype || dtype_of(*key) != dtype || dtype_of(*value) != dtype) return false;
  Problem& p = usual.problem;
  p.dtype = *dtype;
  p.batch = query->shape[0];
  p.heads = p.key_heads = query->shape[1];
  p.queries = query->shape[2];
  p.dim = query->shape[3];
  p.keys = key->shape[2];
  p.value_dim = value->shape[3];
  if (!has_shape(*key, p.batch, p.heads, p.keys, p.dim) ||
      !has_shape(*value, p.batch, p.heads, p.keys, p.value_dim) || p.dim == 0 ||
      p.dim > kLargestDim || p.value_dim > kLargestDim) {
    return false;
  }
  p.query = place<View>(*query);
  p.key = place<View>(*key);
  p.value = place<View>(*value);
  if (!read_options(options.is_causal, options.scale, options.power, p)) return false;
  if (!PyFloat_CheckExact(options.threshold.ptr())) return false;
  const double threshold = PyFloat_AS_DOUBLE(options.threshold.ptr());
  if (!(std::fabs(threshold) <= std::numeric_limits<float>::max())) return false;
  if (threshold != 0) {
    usual.thresholds.assign(static_cast<std::size_t>(p.heads), static_cast<float>(threshold));
    p.threshold = usual.thresholds.data();
  }
  if (!tensors.mask.is_none() && !check_mask(tensors.mask, p)) return false;
  usual.kernels = choose_kernels();
  return usual.kernels != nullptr;
}

bool DirectCalls::check_mask(nb::handle mask, Problem& p) const {
  if (p.causal) return false;
  const auto read = torch_.read(mask);
  if (!read || read->dims > 4 || torch_.requires_grad(mask)) return false;
  if (is(read->dtype, dlpack::kBool, 8)) {
    p.mask.kind = Mask::Kind::boolean;
  } else if (is(read->dtype, dlpack::kFloat, 32)) {
    p.mask.kind = Mask::Kind::additive;
  } else if (is(read->dtype, dlpack::kBfloat, 16) && p.dtype == DType::bf16) {
    p.mask.kind = Mask::Kind::additive_bf16;
  } else {
    return false;
  }
  const std::int64_t full[] = {p.batch, p.heads, p.queries, p.keys};
  std::int64_t* strides[] = {&p.mask.batch, &p.mask.head, &p.mask.row, &p.mask.column};
  const int missing = 4 - read->dims;
  for (int i = 0; i < 4; i++) {
    const std::int64_t size = i < missing ? 1 : read->shape[i - missing];
    if (size != full[i] && size != 1) return false;
    *strides[i] = size == 1 ? 0 : read->strides[i - missing];  // 0 where it broadcasts
  }
  p.mask.data = read->data;
  return true;
}

nb::object DirectCalls::empty_output(const Tensors& tensors, const Problem& p) const {
  if (p.dim == p.value_dim) return torch_.empty_like(tensors.query);
  return empty_output_(tensors.query, tensors.value);
}

bool DirectCalls::needs_gradients(const Tensors& tensors) const {
  return torch_.is_grad_enabled() &&
         (torch_.requires_grad(tensors.query) || torch_.requires_grad(tensors.key) ||
          torch_.requires_grad(tensors.value));
}

nb::object DirectCalls::empty_bits(nb::handle query, const Problem& p,
                                   std::uint64_t*& words) const {
  if (bytes_of_bits(p) <= kMostBytes) {
    nb::object bits = nb::steal(PyBytes_FromStringAndSize(nullptr, bytes_of_bits(p)));
    if (!bits.is_valid()) nb::raise_python_error();
    words = reinterpret_cast<std::uint64_t*>(PyBytes_AS_STRING(bits.ptr()));
    return bits;
  }
  nb::object bits = torch_.empty_words(query, {p.batch, p.heads, p.queries, words_per_row(p)});
  const auto view = torch_.view(bits);
  if (!view) return nb::none();
  words = static_cast<std::uint64_t*>(view->data);
  return bits;
}

// Whether bits are those of such a call, or None.
bool DirectCalls::check_bits(nb::handle bits, const Problem& p, const std::uint64_t*& words) const {
  if (bits.is_none()) return true;
  if (PyBytes_CheckExact(bits.ptr())) {
    words = reinterpret_cast<const std::uint64_t*>(PyBytes_AS_STRING(bits.ptr()));
    return PyBytes_GET_SIZE(bits.ptr()) == bytes_of_bits(p);
  }
  const auto read = torch_.read(bits);
  if (!read || !is(read->dtype, dlpack::kInt, 64) || read->dims != 4 ||
      !has_shape(*read, p.batch, p.heads, p.queries, words_per_row(p)) || !is_contiguous(*read)) {
    return false;
  }
  words = static_cast<const std::uint64_t*>(read->data);
  return true;
}

nb::object DirectCalls::forward(nb::handle query, nb::handle key, nb::handle value,
                                nb::handle mask, nb::handle is_causal, nb::handle scale,
                                nb::handle threshold, nb::handle power, nb::handle backend) const {
  const Tensors tensors{query, key, value, mask};
  Usual usual;
  if (!may_serve(backend) || torch_.is_autocast_enabled() ||
      !check(tensors, {is_causal, scale, threshold, power}, usual)) {
    return nb::none();
  }
  const Problem& p = usual.problem;
  const nb::object output = empty_output(tensors, p);
  const auto target = torch_.view(output);
  if (!target || !has_rows(*target)) return nb::none();
  ForwardResult result;
  result.output = place<Target>(*target);
  const bool is_recorded = needs_gradients(tensors);
  nb::object bits = nb::none();
  if (is_recorded && can_keep_bits(p)) {
    bits = empty_bits(query, p, result.bits);
    if (bits.is_none()) return bits;
  }
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    usual.kernels->forward(p, result, threads);
  }
  return is_recorded ? nb::make_tuple(output, bits) : output;
}

// Contiguous memory for the gradient of a tensor.
nb::object DirectCalls::empty_gradient(nb::handle tensor, void*& data) const {
  const auto like = torch_.view(tensor);
  nb::object gradient = like && is_contiguous(*like) ? torch_.empty_like(tensor)
                                                     : torch_.contiguous_empty_like(tensor);
  const auto target = torch_.view(gradient);
  data = target ? target->data : nullptr;
  return target ? gradient : nb::none();
}

nb::object DirectCalls::backward(nb::handle grad_output, nb::handle query, nb::handle key,
                                 nb::handle value, nb::handle mask, nb::handle bits,
                                 nb::handle is_causal, nb::handle scale, nb::handle threshold,
                                 nb::handle power) const {
  Usual usual;
  const Problem& p = usual.problem;
  if (torch_.is_grad_enabled() ||
      !check({query, key, value, mask}, {is_causal, scale, threshold, power}, usual)) {
    return nb::none();
  }
  nb::object upstream = nb::borrow(grad_output);
  auto read = torch_.read(upstream);
  if (read && read->dims == 4 && read->strides[3] != 1) {
    upstream = upstream.attr("contiguous")();
    read = torch_.read(upstream);
  }
  if (!read || !has_rows(*read) || dtype_of(*read) != p.dtype ||
      !has_shape(*read, p.batch, p.heads, p.queries, p.value_dim)) {
    return nb::none();
  }
  BackwardResult result;
  result.grad_output = place<View>(*read);
  if (!check_bits(bits, p, result.bits)) return nb::none();
  const nb::object grad_query = empty_gradient(query, result.grad_query);
  const nb::object grad_key = empty_gradient(key, result.grad_key);
  const nb::object grad_value = empty_gradient(value, result.grad_value);
  if (grad_query.is_none() || grad_key.is_none() || grad_value.is_none()) return nb::none();
  const int threads = torch_.threads();
  {
    nb::gil_scoped_release unlocked;
    usual.kernels->backward(p, result, threads);
  }
  return nb::make_tuple(grad_query, grad_key, grad_value);
}

namespace {

// Never destroyed, nor an object of Python's: it refers to much of torch, and so, in a circle that
// Python's collector cannot see, to whatever would hold it.
const DirectCalls* calls = nullptr;

bool connect(const nb::dict& parts) {
  auto made = std::make_unique<DirectCalls>(parts);
  if (!made->is_usable()) return false;
  calls = made.release();
  return true;
}

// A function of Python's that calls one of the members.
template <class... Handles>
void bind(nb::module_& m, const char* name,
          nb::object (DirectCalls::*function)(Handles...) const) {
  m.def(
      name,
      [function](Handles... arguments) {
        return calls == nullptr ? nb::none() : (calls->*function)(arguments...);
      },
      // Whatever it is, None included: the members look at it.
      (static_cast<void>(sizeof(Handles)), nb::arg().none())...);
}

}  // namespace

void bind_direct_calls(nb::module_& m) {
  m.def("connect_torch", &connect);
  bind(m, "direct_forward", &DirectCalls::forward);
  bind(m, "direct_backward", &DirectCalls::backward);
}

}  // namespace relakit::attention
