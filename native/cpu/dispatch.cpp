#include "cpu/dispatch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cpu/features.h"

namespace relakit {

namespace {

std::vector<std::string> find_usable() {
  std::vector<std::string> isas;
#if defined(RELAKIT_WITH_AVX512)
  if (has_cpu_features({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "bmi2",
                        "fma"})) {
    isas.emplace_back("avx512");
  }
#endif
#if defined(RELAKIT_WITH_AVX2)
  if (has_cpu_features({"avx2", "fma"})) isas.emplace_back("avx2");
#endif
#if defined(RELAKIT_WITH_NEON)
  if (has_cpu_features({"neon"})) isas.emplace_back("neon");
#endif
  isas.emplace_back("portable");
  return isas;
}

}  // namespace

const std::vector<std::string>& usable_isas() {
  static const std::vector<std::string> isas = find_usable();
  return isas;
}

const char* environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

const std::string* chosen_isa() {
  const char* wanted = environment("RELAKIT_CPU_ISA");
  if (wanted == nullptr) return &usable_isas().front();
  for (const std::string& isa : usable_isas()) {
    if (isa == wanted) return &isa;
  }
  return nullptr;
}

const std::string* isa_outside_attention() {
  const char* backend = environment("RELAKIT_BACKEND");
  return backend != nullptr && std::strcmp(backend, "reference") == 0 ? nullptr : chosen_isa();
}

void check_isa(const std::string& isa) {
  const auto& usable = usable_isas();
  if (std::find(usable.begin(), usable.end(), isa) != usable.end()) return;
  throw std::invalid_argument("no kernels '" + isa + "' on this machine; " + isa_choices());
}

std::string isa_choices() {
  std::string choices;
  for (const std::string& isa : usable_isas()) choices += (choices.empty() ? "" : ", ") + isa;
  return "choose one of " + choices;
}

}  // namespace relakit
