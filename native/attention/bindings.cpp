#include "attention/bindings.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "attention/entry.h"
#include "attention/kernels.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

const Entry* entry = nullptr;

// Arguments are positional only: there are many, and looking up names would take as long as a short
// call does. Each may be None or anything else; the entry checks it.
using Any = nb::handle;

nb::object attention(Any query, Any key, Any value, Any mask, Any dropout, Any is_causal, Any scale,
                     Any enable_gqa, Any threshold, Any power, Any weights, Any statistics,
                     Any backend, Any keep_bits, Any reach) {
  if (entry == nullptr) return nb::none();
  CallArguments arguments;
  arguments.tensors[0] = query;
  arguments.tensors[1] = key;
  arguments.tensors[2] = value;
  arguments.mask = mask;
  arguments.threshold = threshold;
  arguments.is_causal = is_causal;
  arguments.scale = scale;
  arguments.power = power;
  arguments.dropout = dropout;
  arguments.reach = reach;
  arguments.is_grouped = enable_gqa.ptr() == Py_True;
  arguments.is_trusted = !keep_bits.is_none();
  if (arguments.is_trusted) {  // an operator, which passes its own seed for dropout
    if (!PyTuple_CheckExact(dropout.ptr()) || PyTuple_GET_SIZE(dropout.ptr()) != 2) return nb::none();
    arguments.dropout = PyTuple_GET_ITEM(dropout.ptr(), 0);
    arguments.seed = PyTuple_GET_ITEM(dropout.ptr(), 1);
  }
  Wishes wishes;
  wishes.weights = weights;
  wishes.statistics = statistics;
  wishes.backend = backend;
  wishes.keep_bits = keep_bits.ptr() == Py_True;
  return forward(*entry, arguments, {}, wishes);
}

// A tuple of one to three tensors; false for anything else.
bool take_tensors(Any tensors, CallArguments& arguments) {
  if (!PyTuple_CheckExact(tensors.ptr())) return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(tensors.ptr());
  if (count < 1 || count > 3) return false;
  arguments.count = static_cast<int>(count);
  for (Py_ssize_t i = 0; i < count; i++) {
    arguments.tensors[i] = PyTuple_GET_ITEM(tensors.ptr(), i);
  }
  return true;
}

nb::object multihead_attention(Any projections, std::int64_t heads, int positions, Any mask,
                               Any dropout, Any is_causal, Any threshold, Any power, Any weights,
                               Any backend, Any gain, Any gate, double eps, Any reach) {
  CallArguments arguments;
  if (entry == nullptr || heads < 1 || !take_tensors(projections, arguments)) return nb::none();
  arguments.layout = {heads, positions};
  arguments.mask = mask;
  arguments.threshold = threshold;
  arguments.is_causal = is_causal;
  arguments.reach = reach;
  arguments.scale = Py_None;
  arguments.power = power;
  arguments.dropout = dropout;
  Wishes wishes;
  wishes.weights = weights;
  wishes.backend = backend;
  return forward(*entry, arguments, {gain, gate, eps}, wishes);
}

// `options` is the relakit.ops.native.attention.Options that forward made for autograd.
nb::object attention_backward(Any grad_output, Any mixed, Any inverse_rms, Any bits, Any options,
                              Any mask, Any threshold, Any gain, Any gate, Any tensors,
                              bool wants_threshold, bool is_trusted) {
  CallArguments arguments;
  if (entry == nullptr || !take_tensors(tensors, arguments)) return nb::none();
  const auto option = [&](Py_ssize_t i) {
    PyObject* item = PyTuple_GetItem(options.ptr(), i);
    if (item == nullptr) nb::raise_python_error();
    return nb::handle(item);
  };
  arguments.layout = {nb::cast<std::int64_t>(option(5)), nb::cast<int>(option(6))};
  arguments.mask = mask;
  arguments.threshold = threshold;
  arguments.is_causal = option(0);
  arguments.reach = option(8);
  arguments.scale = option(1);
  arguments.power = option(2);
  arguments.dropout = option(3);
  arguments.seed = option(4);
  arguments.is_grouped = true;
  arguments.is_trusted = is_trusted;
  return backward(*entry, arguments, {gain, gate, nb::cast<double>(option(7))},
                  {mixed, inverse_rms, bits}, grad_output, wants_threshold);
}

Thresholds& thresholds_of(const std::string& isa, const std::string& dtype) {
  ThresholdsByType& both = *find_kernels(isa).thresholds;
  if (dtype == "float32") return both.f32;
  if (dtype == "bfloat16") return both.bf16;
  throw std::invalid_argument("thresholds are for float32 and bfloat16, not '" + dtype + "'");
}

nb::dict thresholds(const std::string& isa, const std::string& dtype) {
  const Thresholds& now = thresholds_of(isa, dtype);
  nb::dict named;
  named["dense_forward"] = now.dense_forward;
  named["dense_backward"] = now.dense_backward;
  named["most_candidates"] = now.most_candidates;
  named["least_to_screen"] = now.least_to_screen;
  named["most_to_fetch"] = now.most_to_fetch;
  return named;
}

void set_thresholds(const std::string& isa, const std::string& dtype, float dense_forward,
                    float dense_backward, float most_candidates, std::int64_t least_to_screen,
                    float most_to_fetch) {
  for (const float share : {dense_forward, dense_backward, most_candidates, most_to_fetch}) {
    if (!(share >= 0.0f && share <= 1.0f)) {
      throw std::invalid_argument("thresholds are shares from 0 to 1, got " + std::to_string(share));
    }
  }
  thresholds_of(isa, dtype) = {dense_forward, dense_backward, most_candidates, least_to_screen,
                               most_to_fetch};
}

// Define a Python function whose arguments may all be None.
template <class... Arguments>
void define(nb::module_& m, const char* name, nb::object (*function)(Arguments...)) {
  m.def(name, function, (static_cast<void>(sizeof(Arguments)), nb::arg().none())...);
}

}  // namespace

void connect(const Entry* connected) { entry = connected; }

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
void bind(nb::module_& m) {
  m.attr("LARGEST_DIM") = kLargestDim;
  define(m, "attention", &attention);
  define(m, "multihead_attention", &multihead_attention);
  define(m, "attention_backward", &attention_backward);
  m.def("attention_thresholds", &thresholds, nb::arg("isa"), nb::arg("dtype"));
  m.def("set_attention_thresholds", &set_thresholds, nb::arg("isa"), nb::arg("dtype"), nb::kw_only(),
        nb::arg("dense_forward"), nb::arg("dense_backward"), nb::arg("most_candidates"),
        nb::arg("least_to_screen"), nb::arg("most_to_fetch"));
  m.def("has_screening", [](const std::string& isa) { return find_kernels(isa).has_screening; },
        nb::arg("isa"));
  m.def("vector_width", [](const std::string& isa) { return find_kernels(isa).width; },
        nb::arg("isa"));
  m.def("multiply_and_add",
        [](const std::string& isa, std::int64_t times) {
          return find_kernels(isa).multiply_and_add(times);
        },
        nb::arg("isa"), nb::arg("times"));
  m.def("score_products",
        [](const std::string& isa, std::int64_t queries, std::int64_t keys, std::int64_t dim,
           std::int64_t times) {
          return find_kernels(isa).score_products(queries, keys, dim, times);
        },
        nb::arg("isa"), nb::arg("queries"), nb::arg("keys"), nb::arg("dim"), nb::arg("times"));
}

}  // namespace relakit::attention
