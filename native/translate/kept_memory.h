#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace relakit::translate {

// Memory that is aligned to cache lines. Large blocks of a search are kept for the next search, up
// to a limit: fresh pages from the system must be cleared first, which takes longer than many
// kernels do. Blocks of weights are not kept: a model that is gone leaves nothing behind.
enum class Use { search, weights };
void* take_memory(std::size_t size, Use use);
void give_back(void* memory, std::size_t size, Use use);

// An allocator for vectors whose entries are written before they are read.
template <class T, Use use>
struct KeptMemory {
  using value_type = T;
  template <class Other>
  struct rebind {
    using other = KeptMemory<Other, use>;
  };

  KeptMemory() = default;
  template <class Other>
  explicit KeptMemory(const KeptMemory<Other, use>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(take_memory(count * sizeof(T), use)); }
  void deallocate(T* memory, std::size_t count) { give_back(memory, count * sizeof(T), use); }

  // Without a value, an entry is left uninitialised.
  template <class U>
  void construct(U* entry) {
    ::new (static_cast<void*>(entry)) U;
  }
  template <class U, class... Values>
  void construct(U* entry, Values&&... values) {
    ::new (static_cast<void*>(entry)) U(std::forward<Values>(values)...);
  }
};

template <class T, class Other, Use use>
bool operator==(const KeptMemory<T, use>&, const KeptMemory<Other, use>&) {
  return true;
}
template <class T, class Other, Use use>
bool operator!=(const KeptMemory<T, use>&, const KeptMemory<Other, use>&) {
  return false;
}

template <class T>
using Buffer = std::vector<T, KeptMemory<T, Use::search>>;
template <class T>
using Weights = std::vector<T, KeptMemory<T, Use::weights>>;

}  // namespace relakit::translate
