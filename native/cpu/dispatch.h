#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

// Which instruction set ("isa") to use. Kernels come in families (attention, loss, norm, simplex, translate). Each
// has one table of functions per instruction set: a struct Kernels whose member `isa` names it.

namespace relakit {

// The names of the instruction sets that this build has kernels for and this machine can run, best
// first. "portable" is always among them.
const std::vector<std::string>& usable_isas();

// Throws std::invalid_argument unless `isa` is one of usable_isas().
void check_isa(const std::string& isa);
// For error messages: "choose one of", and the names of usable_isas().
std::string isa_choices();

// The value of an environment variable RELAKIT_...; null if it is unset or empty. Changes to
// Python's os.environ show up here; reading os.environ itself would take longer than a short call.
const char* environment(const char* variable);

// The instruction set to use: the one that RELAKIT_CPU_ISA names (null if it is not usable here),
// or else the best one.
const std::string* chosen_isa();

// The same for everything but attention; null also if RELAKIT_BACKEND asks for the reference. The
// variable's other values are about attention alone.
const std::string* isa_outside_attention();

// A family's table for an instruction set; throws std::invalid_argument if that is not usable here.
// `tables` are all tables that the build has: {RELAKIT_KERNEL_TABLES} in the family's namespace.
template <class Kernels>
const Kernels& find_table(const std::string& isa, std::initializer_list<const Kernels*> tables) {
  check_isa(isa);
  for (const Kernels* table : tables) {
    if (isa == table->isa) return *table;
  }
  throw std::logic_error("a family of kernels lacks a table for '" + isa + "'");
}

}  // namespace relakit

#if defined(RELAKIT_WITH_AVX512)
#define RELAKIT_AVX512_TABLE &avx512_kernels,
#else
#define RELAKIT_AVX512_TABLE
#endif
#if defined(RELAKIT_WITH_AVX2)
#define RELAKIT_AVX2_TABLE &avx2_kernels,
#else
#define RELAKIT_AVX2_TABLE
#endif
#if defined(RELAKIT_WITH_NEON)
#define RELAKIT_NEON_TABLE &neon_kernels,
#else
#define RELAKIT_NEON_TABLE
#endif
#define RELAKIT_KERNEL_TABLES \
  RELAKIT_AVX512_TABLE RELAKIT_AVX2_TABLE RELAKIT_NEON_TABLE &portable_kernels
