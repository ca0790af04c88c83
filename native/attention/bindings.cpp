#include "attention/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "attention/direct.h"
#include "attention/kernels.h"
#include "attention/sinks.h"

namespace nb = nanobind;

namespace relakit::attention {

namespace {

// Tensors come as addresses (Tensor.data_ptr), so that no torch header is needed and one build
// serves every version of torch. relakit.attention keeps them alive and checks their shapes.
using Address = std::uintptr_t;

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}

std::int64_t item(const nb::tuple& numbers, std::size_t index) {
  return nb::cast<std::int64_t>(numbers[index]);
}

// Strides [batch, head, row, feature] of a tensor whose features are contiguous.
template <class Place, class Pointer>
Place place(Pointer data, const nb::tuple& strides) {
  return {data, item(strides, 0), item(strides, 1), item(strides, 2)};
}

void make_problem(Problem* self, bool is_bfloat16, Address query, const nb::tuple& query_shape,
                  const nb::tuple& query_strides, Address key, const nb::tuple& key_strides,
                  Address value, const nb::tuple& value_shape, const nb::tuple& value_strides,
                  double scale, int power, bool causal) {
  Problem p;
  p.batch = item(query_shape, 0);
  p.heads = item(query_shape, 1);
  p.queries = item(query_shape, 2);
  p.dim = item(query_shape, 3);
  p.key_heads = item(value_shape, 1);
  p.keys = item(value_shape, 2);
  p.value_dim = item(value_shape, 3);
  p.dtype = is_bfloat16 ? DType::bf16 : DType::f32;
  p.query = place<View>(pointer<const void>(query), query_strides);
  p.key = place<View>(pointer<const void>(key), key_strides);
  p.value = place<View>(pointer<const void>(value), value_strides);
  p.scale = static_cast<float>(scale);
  p.power = power;
  p.causal = causal;
  new (self) Problem(p);
}

void set_mask(Problem& p, Address data, bool is_boolean, bool is_bfloat16,
              const nb::tuple& strides) {
  const auto kind = is_boolean    ? Mask::Kind::boolean
                    : is_bfloat16 ? Mask::Kind::additive_bf16
                                  : Mask::Kind::additive;
  p.mask = {kind,
            pointer<const void>(data),
            item(strides, 0),
            item(strides, 1),
            item(strides, 2),
            item(strides, 3)};
}

void set_dropout(Problem& p, double probability, std::uint64_t seed) {
  p.dropout = static_cast<float>(probability);
  p.seed = seed;
}

void forward(const std::string& isa, int threads, const Problem& problem, Address output,
             const nb::tuple& output_strides, Address bits, Address row_counts, Address row_sums,
             WeightsSink* sink) {
  ForwardResult result;
  result.output = place<Target>(pointer<void>(output), output_strides);
  result.bits = pointer<std::uint64_t>(bits);
  result.row_counts = pointer<std::int32_t>(row_counts);
  result.row_sums = pointer<float>(row_sums);
  result.sink = sink;
  const Kernels& chosen = find_kernels(isa);
  nb::gil_scoped_release unlocked;
  chosen.forward(problem, result, threads);
}

void backward(const std::string& isa, int threads, const Problem& problem, Address grad_output,
              const nb::tuple& grad_output_strides, Address bits, Address grad_query,
              Address grad_key, Address grad_value, Address grad_rows) {
  BackwardResult result;
  result.grad_output = place<View>(pointer<const void>(grad_output), grad_output_strides);
  result.bits = pointer<const std::uint64_t>(bits);
  result.grad_query = pointer<void>(grad_query);
  result.grad_key = pointer<void>(grad_key);
  result.grad_value = pointer<void>(grad_value);
  result.grad_rows = pointer<float>(grad_rows);
  const Kernels& chosen = find_kernels(isa);
  nb::gil_scoped_release unlocked;
  chosen.backward(problem, result, threads);
}

}  // namespace

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi. Arguments are
// positional only: there are many, and looking up names would take as long as a short call does.
void bind(nb::module_& m) {
  nb::class_<Problem>(m, "Problem")
      .def("__init__", &make_problem)
      .def("set_mask", &set_mask)
      .def("set_threshold",
           [](Problem& p, Address data) { p.threshold = pointer<const float>(data); })
      .def("set_dropout", &set_dropout);
  nb::class_<WeightsSink>(m, "WeightsSink");
  nb::class_<DenseWeights, WeightsSink>(m, "DenseWeights")
      .def("__init__", [](DenseWeights* self, Address data, bool is_bfloat16, std::int64_t keys) {
        new (self) DenseWeights(pointer<void>(data), is_bfloat16 ? DType::bf16 : DType::f32, keys);
      });
  nb::class_<SparseWeights, WeightsSink>(m, "SparseWeights")
      .def(nb::init<std::int64_t>())
      .def("size", &SparseWeights::size)
      .def("write", [](const SparseWeights& self, Address starts, Address columns, Address weights) {
        self.write(pointer<std::int64_t>(starts), pointer<std::int64_t>(columns),
                   pointer<float>(weights));
      });
  m.def("rela_forward", &forward, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg().none());
  m.def("rela_backward", &backward);
  bind_direct_calls(m);
}

}  // namespace relakit::attention
