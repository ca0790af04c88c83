#pragma once

// Goes before a short loop over accumulators: unless the compiler unrolls it, they stay in memory.
#if defined(__clang__)
#define RELAKIT_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define RELAKIT_UNROLL _Pragma("GCC unroll 16")
#else
#define RELAKIT_UNROLL
#endif
