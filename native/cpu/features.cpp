#include "cpu/features.h"

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
#define RELAKIT_X86 1
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdint>

namespace relakit {

#if defined(RELAKIT_X86)

// CPUID and XGETBV are read directly: which names __builtin_cpu_supports knows depends on the
// compiler and its version, and MSVC does not have it.
namespace {

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero if the processor has no such leaf.
Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r;
#if defined(_MSC_VER)
  int out[4];
  __cpuid(out, 0);
  if (static_cast<std::uint32_t>(out[0]) < leaf) return r;
  __cpuidex(out, static_cast<int>(leaf), static_cast<int>(subleaf));
  r.eax = static_cast<std::uint32_t>(out[0]);
  r.ebx = static_cast<std::uint32_t>(out[1]);
  r.ecx = static_cast<std::uint32_t>(out[2]);
  r.edx = static_cast<std::uint32_t>(out[3]);
#else
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return Registers{};
#endif
  return r;
}

// Which register states the operating system saves on a context switch. Only legal with OSXSAVE.
std::uint64_t saved_states() {
#if defined(_MSC_VER)
  return _xgetbv(0);
#else
  std::uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
#endif
}

bool bit(std::uint32_t value, int position) { return (value >> position) & 1u; }

}  // namespace

std::vector<std::pair<std::string, bool>> cpu_features() {
  const Registers leaf1 = cpuid(1, 0);
  const Registers leaf7 = cpuid(7, 0);
  // Leaf 7 reports its last subleaf in EAX; a subleaf past it holds garbage.
  const Registers leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : Registers{};

  const bool osxsave = bit(leaf1.ecx, 27);
  const std::uint64_t states = osxsave ? saved_states() : 0;
  const auto saves = [states](std::uint64_t mask) { return (states & mask) == mask; };
  const bool ymm = saves(0x6);       // SSE and AVX state
  const bool zmm = saves(0xe6);      // ... and the three AVX-512 states
  const bool tile = saves(0x60000);  // AMX tile configuration and data

  const bool avx = ymm && bit(leaf1.ecx, 28);
  const bool avx512f = zmm && bit(leaf7.ebx, 16);
  return {
      {"sse4.2", bit(leaf1.ecx, 20)},
      {"avx", avx},
      {"f16c", avx && bit(leaf1.ecx, 29)},
      {"fma", avx && bit(leaf1.ecx, 12)},
      {"bmi2", bit(leaf7.ebx, 8)},
      {"avx2", avx && bit(leaf7.ebx, 5)},
      {"avx512f", avx512f},
      {"avx512dq", avx512f && bit(leaf7.ebx, 17)},
      {"avx512bw", avx512f && bit(leaf7.ebx, 30)},
      {"avx512vl", avx512f && bit(leaf7.ebx, 31)},
      {"avx512_vbmi2", avx512f && bit(leaf7.ecx, 6)},
      {"avx512_vnni", avx512f && bit(leaf7.ecx, 11)},
      {"avx_vnni", avx && bit(leaf7_1.eax, 4)},
      {"avx512_bf16", avx512f && bit(leaf7_1.eax, 5)},
      // On Linux a process must still ask for the tiles (arch_prctl) before it uses them.
      {"amx_bf16", tile && bit(leaf7.edx, 24) && bit(leaf7.edx, 22)},
  };
}

#elif defined(__aarch64__) || defined(_M_ARM64)

// Advanced SIMD is part of the 64-bit ARM base architecture; "asimddp" is its byte dot products.
std::vector<std::pair<std::string, bool>> cpu_features() {
#if defined(__linux__)
  const bool dot_products = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__ARM_FEATURE_DOTPROD)  // as on Macs, which all have them
  const bool dot_products = true;
#else
  const bool dot_products = false;
#endif
  return {{"neon", true}, {"asimddp", dot_products}};
}

#elif defined(__arm__)

// On 32-bit ARM a program built for NEON does not start without it, so the build knows the answer.
std::vector<std::pair<std::string, bool>> cpu_features() {
#if defined(__ARM_NEON)
  return {{"neon", true}};
#else
  return {{"neon", false}};
#endif
}

#else

std::vector<std::pair<std::string, bool>> cpu_features() { return {}; }

#endif

bool is_amd() {
#if defined(RELAKIT_X86)
  const Registers leaf0 = cpuid(0, 0);  // the vendor's name is in EBX, EDX and ECX
  return leaf0.ebx == 0x68747541 && leaf0.edx == 0x69746e65 && leaf0.ecx == 0x444d4163;
#else
  return false;
#endif
}

bool has_cpu_features(const std::vector<std::string>& wanted) {
  const auto features = cpu_features();
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return std::any_of(features.begin(), features.end(), [&](const auto& feature) {
      return feature.first == name && feature.second;
    });
  });
}

}  // namespace relakit
