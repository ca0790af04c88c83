#include "cpu/dispatch.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "cpu/features.h"

namespace relakit {

namespace {

bool has(const std::vector<std::string>& wanted) {
  const auto features = cpu_features();
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return std::any_of(features.begin(), features.end(), [&](const auto& feature) {
      return feature.first == name && feature.second;
    });
  });
}

std::vector<const Kernels*> find_usable() {
  std::vector<const Kernels*> usable;
#if defined(RELAKIT_WITH_AVX512)
  if (has({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vbmi2", "avx512_vnni", "bmi2",
           "fma"})) {
    usable.push_back(&avx512_kernels);
  }
#endif
#if defined(RELAKIT_WITH_AVX2)
  if (has({"avx2", "fma"})) usable.push_back(&avx2_kernels);
#endif
  usable.push_back(&portable_kernels);
  return usable;
}

const std::vector<const Kernels*>& usable() {
  static const std::vector<const Kernels*> kernels = find_usable();
  return kernels;
}

}  // namespace

std::vector<std::string> usable_kernels() {
  std::vector<std::string> names;
  for (const auto* kernels : usable()) names.emplace_back(kernels->name);
  return names;
}

const char* environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

const std::string* chosen_isa() {
  static const std::vector<std::string> isas = usable_kernels();
  const char* wanted = environment("RELAKIT_CPU_ISA");
  if (wanted == nullptr) return &isas.front();
  for (const std::string& isa : isas) {
    if (isa == wanted) return &isa;
  }
  return nullptr;
}

const Kernels& find_kernels(const std::string& name) {
  std::string choices;
  for (const auto* kernels : usable()) {
    if (name == kernels->name) return *kernels;
    choices += (choices.empty() ? "" : ", ") + std::string(kernels->name);
  }
  throw std::invalid_argument("no kernels '" + name + "' on this machine; choose one of " + choices);
}

}  // namespace relakit
