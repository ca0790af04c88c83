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

}  // namespace relakit
