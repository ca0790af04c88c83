#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "attention/bindings.h"
#include "attention/entry.h"
#include "cpu/dispatch.h"
#include "cpu/features.h"
#include "loss/bindings.h"
#include "norm/bindings.h"
#include "norm/entry.h"
#include "simplex/bindings.h"
#include "simplex/entry.h"
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

// The instruction set that RELAKIT_CPU_ISA names, or else the best one.
std::string isa() {
  const std::string* chosen = relakit::chosen_isa();
  if (chosen != nullptr) return *chosen;
  throw std::invalid_argument("RELAKIT_CPU_ISA='" +
                              std::string(relakit::environment("RELAKIT_CPU_ISA")) +
                              "' is not usable here; " + relakit::isa_choices());
}

// The entries are never destroyed, and are not Python objects: they refer to much of torch and,
// through it, to whatever would hold them, a cycle that Python's garbage collector cannot see.
const relakit::attention::Entry* attention_entry = nullptr;

bool connect(const nb::dict& parts) {
  auto attention = std::make_unique<relakit::attention::Entry>(parts);
  if (!attention->torch.can_read()) return false;
  attention_entry = attention.release();
  relakit::attention::connect(attention_entry);
  relakit::norm::connect(new relakit::norm::NormEntry(attention_entry->torch, parts));
  relakit::loss::connect(attention_entry->torch);
  relakit::simplex::connect(new relakit::simplex::SimplexEntry(attention_entry->torch));
  return true;
}

bool is_plain(const nb::args& tensors) {
  if (attention_entry == nullptr || !attention_entry->torch.is_plain()) return false;
  for (nb::handle tensor : tensors) {
    if (!tensor.is_none() && !attention_entry->torch.is_ordinary(tensor)) return false;
  }
  return true;
}

}  // namespace

// Signatures for type checkers, and the documentation, are in src/relakit/_native.pyi.
NB_MODULE(_native, m) {
  m.def("compiler", &compiler);
  m.def("cpu_features", &cpu_features);
  m.def("usable_isas", &relakit::usable_isas);
  m.def("chosen_isa", &isa);
  m.def("connect", &connect);
  m.def("is_plain", &is_plain);
  relakit::attention::bind(m);
  relakit::loss::bind(m);
  relakit::norm::bind(m);
  relakit::simplex::bind(m);
  relakit::translate::bind(m);
}
