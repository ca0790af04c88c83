// In a file of its own: seen together with code that uses them, these operators make GCC warn of `free`.

#include "short_memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local bool is_memory_short = false;

}  // namespace

void relakit::check::make_memory_short(bool is_short) { is_memory_short = is_short; }

void* operator new(std::size_t size) {
  void* memory = is_memory_short ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
