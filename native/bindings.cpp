#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "cpu_features.h"
#include "norm/bindings.h"
#include "rela/dispatch.h"
#include "rela/problem.h"

namespace nb = nanobind;

namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#elif defined(_MSC_VER)
  return "MSVC " + std::to_string(_MSC_VER);
#else
  return "unknown compiler";
#endif
}

nb::dict cpu_features() {
  nb::dict features;
  for (const auto& [name, usable] : relakit::cpu_features()) {
    features[nb::str(name.c_str())] = nb::bool_(usable);
  }
  return features;
}

// Tensors come as addresses (Tensor.data_ptr), so that no torch header is needed and one build
// serves every version of torch. relakit.attention.native keeps them alive and checks their shapes.
template <class T>
T* address(std::uintptr_t value) {
  return reinterpret_cast<T*>(value);
}

relakit::View make_view(std::uintptr_t data, std::int64_t batch, std::int64_t head,
                        std::int64_t row) {
  return {address<const void>(data), batch, head, row};
}

void bind_attention(nb::module_& m) {
  using relakit::Mask;
  using relakit::Problem;
  nb::class_<relakit::View>(m, "View").def(
      "__init__",
      [](relakit::View* self, std::uintptr_t data, std::int64_t batch, std::int64_t head,
         std::int64_t row) { new (self) relakit::View(make_view(data, batch, head, row)); },
      nb::arg("data"), nb::arg("batch"), nb::arg("head"), nb::arg("row"));
  nb::class_<Mask>(m, "Mask").def(
      "__init__",
      [](Mask* self, std::uintptr_t data, bool is_boolean, std::int64_t batch, std::int64_t head,
         std::int64_t row, std::int64_t column) {
        const auto kind = is_boolean ? Mask::Kind::boolean : Mask::Kind::additive;
        new (self) Mask{kind, address<const void>(data), batch, head, row, column};
      },
      nb::arg("data"), nb::arg("is_boolean"), nb::arg("batch"), nb::arg("head"), nb::arg("row"),
      nb::arg("column"));
  nb::class_<Problem>(m, "Problem")
      .def(nb::init<>())
      .def_rw("batch", &Problem::batch)
      .def_rw("heads", &Problem::heads)
      .def_rw("key_heads", &Problem::key_heads)
      .def_rw("queries", &Problem::queries)
      .def_rw("keys", &Problem::keys)
      .def_rw("dim", &Problem::dim)
      .def_rw("value_dim", &Problem::value_dim)
      .def_rw("query", &Problem::query)
      .def_rw("key", &Problem::key)
      .def_rw("value", &Problem::value)
      .def_rw("mask", &Problem::mask)
      .def_rw("causal", &Problem::causal)
      .def_rw("scale", &Problem::scale)
      .def_rw("power", &Problem::power)
      .def_rw("dropout", &Problem::dropout)
      .def_rw("seed", &Problem::seed)
      .def_prop_rw(
          "is_bfloat16", [](const Problem& p) { return p.dtype == relakit::DType::bf16; },
          [](Problem& p, bool is_bfloat16) {
            p.dtype = is_bfloat16 ? relakit::DType::bf16 : relakit::DType::f32;
          })
      .def_prop_rw(
          "threshold",
          [](const Problem& p) { return reinterpret_cast<std::uintptr_t>(p.threshold); },
          [](Problem& p, std::uintptr_t data) { p.threshold = address<const float>(data); });
  m.def("kernels", &relakit::usable_kernels);
  m.def(
      "rela_forward",
      [](const std::string& kernels, int threads, const Problem& problem, std::uintptr_t output) {
        relakit::ForwardResult result;
        result.output = address<void>(output);
        const auto& chosen = relakit::find_kernels(kernels);
        nb::gil_scoped_release unlocked;
        chosen.forward(problem, result, threads);
      },
      nb::arg("kernels"), nb::arg("threads"), nb::arg("problem"), nb::arg("output"));
  m.def(
      "rela_backward",
      [](const std::string& kernels, int threads, const Problem& problem,
         const relakit::View& grad_output, std::uintptr_t grad_query, std::uintptr_t grad_key,
         std::uintptr_t grad_value, std::uintptr_t grad_threshold) {
        const relakit::BackwardResult result{grad_output, address<void>(grad_query),
                                             address<void>(grad_key), address<void>(grad_value),
                                             address<float>(grad_threshold)};
        const auto& chosen = relakit::find_kernels(kernels);
        nb::gil_scoped_release unlocked;
        chosen.backward(problem, result, threads);
      },
      nb::arg("kernels"), nb::arg("threads"), nb::arg("problem"), nb::arg("grad_output"),
      nb::arg("grad_query"), nb::arg("grad_key"), nb::arg("grad_value"),
      nb::arg("grad_threshold"));
}

}  // namespace

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
NB_MODULE(_native, m) {
  m.def("compiler", &compiler);
  m.def("cpu_features", &cpu_features);
  bind_attention(m);
  relakit::norm::bind(m);
}
