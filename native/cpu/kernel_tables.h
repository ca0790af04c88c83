#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "cpu/dispatch.h"

// Every family of kernels has one table for each instruction set. To list those of a namespace:
//   find_table<Kernels>(name, {RELAKIT_KERNEL_TABLES})

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
#define RELAKIT_KERNEL_TABLES RELAKIT_AVX512_TABLE RELAKIT_AVX2_TABLE &portable_kernels

namespace relakit {

// The table of a name; std::invalid_argument if this machine cannot run it.
template <class Table>
const Table& find_table(const std::string& name, std::initializer_list<const Table*> tables) {
  find_kernels(name);  // throws if the machine cannot run them
  for (const Table* table : tables) {
    if (name == table->name) return *table;
  }
  throw std::invalid_argument("no kernels '" + name + "' of this kind in this build");
}

}  // namespace relakit
