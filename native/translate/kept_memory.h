#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace relakit::translate {

// Memory for weights and searches, where lines of the cache begin. Large blocks are kept for the next
// search, up to a limit: pages that come from the system anew must be cleared first, which takes longer
// than many a kernel.
void* take_memory(std::size_t size);
void give_back(void* memory, std::size_t size);

// For vectors whose entries are written before they are read.
template <class T>
struct KeptMemory {
  using value_type = T;

  KeptMemory() = default;
  template <class Other>
  explicit KeptMemory(const KeptMemory<Other>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(take_memory(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) { give_back(memory, count * sizeof(T)); }

  // Without a value, an entry is left as it is.
  template <class U>
  void construct(U* entry) {
    ::new (static_cast<void*>(entry)) U;
  }
  template <class U, class... Values>
  void construct(U* entry, Values&&... values) {
    ::new (static_cast<void*>(entry)) U(std::forward<Values>(values)...);
  }
};

template <class T, class Other>
bool operator==(const KeptMemory<T>&, const KeptMemory<Other>&) {
  return true;
}
template <class T, class Other>
bool operator!=(const KeptMemory<T>&, const KeptMemory<Other>&) {
  return false;
}

template <class T>
using Buffer = std::vector<T, KeptMemory<T>>;

}  // namespace relakit::translate
