// kernel_check [--tolerance=FACTOR] [SET ...]: compare the kernels of these instruction sets, or of all that
// are usable here, with plain formulas. The exit code is 1 if one differs, and 2 if a set is not usable.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "check.h"
#include "cpu/dispatch.h"
#include "cpu/features.h"

namespace relakit::check {

// vector_check.cpp, once for each instruction set.
namespace avx2 {
void check_vectors();
}
namespace avx512 {
void check_vectors();
}
namespace neon {
void check_vectors();
}
namespace portable {
void check_vectors();
}

namespace {

void check_vectors(const std::string& isa) {
  begin(isa, "vectors");
#if defined(RELAKIT_WITH_AVX2)
  if (isa == "avx2") avx2::check_vectors();
#endif
#if defined(RELAKIT_WITH_AVX512)
  if (isa == "avx512") avx512::check_vectors();
#endif
#if defined(RELAKIT_WITH_NEON)
  if (isa == "neon") neon::check_vectors();
#endif
  if (isa == "portable") portable::check_vectors();
}

void print_machine() {
  std::printf("processor:");
  for (const auto& [name, usable] : cpu_features()) {
    if (usable) std::printf(" %s", name.c_str());
  }
  std::printf("\nkernels:");
  for (const std::string& isa : usable_isas()) std::printf(" %s", isa.c_str());
  std::printf("\n");
}

void check_all(const std::vector<std::string>& isas) {
  check_kept_memory();
  check_threads();
  for (const std::string& isa : isas) {
    check_isa(isa);
    const std::int64_t before = comparisons(), failed = failures();
    check_vectors(isa);
    check_attention(isa);
    check_loss(isa);
    check_norm(isa);
    check_simplex(isa);
    check_translate(isa);
    check_attend(isa);
    std::printf("%s: %lld comparisons, %lld differences\n", isa.c_str(),
                static_cast<long long>(comparisons() - before),
                static_cast<long long>(failures() - failed));
  }
}

}  // namespace
}  // namespace relakit::check

int main(int count, char** arguments) {
  const std::string option = "--tolerance=";
  std::vector<std::string> named;
  for (const std::string& argument : std::vector<std::string>(arguments + 1, arguments + count)) {
    if (argument.compare(0, option.size(), option) == 0) {
      relakit::check::set_tolerance(std::atof(argument.c_str() + option.size()));
    } else {
      named.push_back(argument);
    }
  }
  relakit::check::print_machine();
  try {
    relakit::check::check_all(named.empty() ? relakit::usable_isas() : named);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_check: %s\n", error.what());
    return 2;
  }
  return relakit::check::failures() == 0 ? 0 : 1;
}
