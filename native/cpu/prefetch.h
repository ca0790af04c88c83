#pragma once

namespace relakit {

// Ask for the line of memory at an address that will be read soon.
static inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

// Into the second level of the cache alone: the first can wait for a few dozen lines at once, which others
// may need more.
static inline void prefetch_second(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 0, 2);
#else
  (void)address;
#endif
}

}  // namespace relakit
