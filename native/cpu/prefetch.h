#pragma once

namespace relakit {

// Ask for the cache line at an address that will be read soon.
static inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

// Into the second-level cache only: the first level can wait for only a few dozen lines at once,
// and other reads may need those slots more.
static inline void prefetch_second(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 0, 2);
#else
  (void)address;
#endif
}

}  // namespace relakit
