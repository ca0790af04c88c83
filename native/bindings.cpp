#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "attention/bindings.h"
#include "cpu/dispatch.h"
#include "cpu/features.h"
#include "norm/bindings.h"
#include "translate/bindings.h"

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

}  // namespace

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
NB_MODULE(_native, m) {
  m.def("compiler", &compiler);
  m.def("cpu_features", &cpu_features);
  m.def("usable_isas", &relakit::usable_isas);
  relakit::attention::bind(m);
  relakit::norm::bind(m);
  relakit::translate::bind(m);
}
