#pragma once

// Put before a short loop over accumulators: if the compiler does not unroll it, they stay in memory.
#if defined(__clang__)
#define RELAKIT_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define RELAKIT_UNROLL _Pragma("GCC unroll 16")
#else
#define RELAKIT_UNROLL
#endif
