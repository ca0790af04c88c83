#include "translate/kept_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace relakit::translate {

namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;
#if defined(RELAKIT_SEPARATE_SCRATCH)
constexpr std::size_t kSmallest = ~std::size_t{0};  // separate buffers, for memory checks
#else
constexpr std::size_t kSmallest = std::size_t{1} << 18;  // malloc keeps smaller ones itself
#endif
constexpr std::size_t kMostKept = std::size_t{1} << 28;

// A cache line, or a huge page for large blocks. Where the system has huge pages, weights, which
// are read from end to end for every token, then arrive about a fifth faster.
std::align_val_t alignment(std::size_t size) { return std::align_val_t(size < kPage ? 64 : kPage); }

void* allocate(std::size_t size) {
  void* memory = ::operator new(size, alignment(size));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Whole pages only. If the system has no huge pages, nothing is lost.
  if (size >= kPage) madvise(memory, size / kPage * kPage, MADV_HUGEPAGE);
#endif
#if defined(RELAKIT_SEPARATE_SCRATCH)
  std::memset(memory, 0xFF, size);  // NaN, which exposes reads before the first write
#endif
  return memory;
}

void release(void* memory, std::size_t size) { ::operator delete(memory, alignment(size)); }

// At most a quarter more than asked for: with only a few different sizes, what one search gives
// back fits the next search, although its sentences have other lengths.
std::size_t rounded(std::size_t size) {
  std::size_t step = kSmallest / 4;
  while (size > 8 * step) step *= 2;
  return (size + step - 1) / step * step;
}

class Kept {
 public:
  // A block of this size, or null.
  void* take(std::size_t size) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = std::find_if(blocks_.begin(), blocks_.end(),
                                    [size](const Block& block) { return block.size == size; });
    if (found == blocks_.end()) return nullptr;
    void* memory = found->memory;
    blocks_.erase(found);
    bytes_ -= size;
    return memory;
  }
  // Drops the oldest blocks if there are too many. Never throws: destructors give memory back.
  void keep(void* memory, std::size_t size) noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    try {
      blocks_.push_back({memory, size});
    } catch (const std::bad_alloc&) {
      release(memory, size);
      return;
    }
    bytes_ += size;
    while (bytes_ > kMostKept) {
      release(blocks_.front().memory, blocks_.front().size);
      bytes_ -= blocks_.front().size;
      blocks_.pop_front();
    }
  }

 private:
  struct Block {
    void* memory;
    std::size_t size;
  };

  std::mutex mutex_;
  std::deque<Block> blocks_;  // oldest first
  std::size_t bytes_ = 0;
};

// Never destroyed: a search may end after static objects are gone.
Kept* blocks = nullptr;
std::once_flag prepared;

Kept& kept() {
  std::call_once(prepared, [] {
    blocks = new Kept;
#if !defined(_WIN32)
    // The lock may have been held by a thread that does not exist in the forked process.
    pthread_atfork(nullptr, nullptr, [] { blocks = new Kept; });
#endif
  });
  return *blocks;
}

}  // namespace

void* take_memory(std::size_t size, Use use) {
  if (use == Use::weights || size < kSmallest) return allocate(size);
  void* memory = kept().take(rounded(size));
  return memory != nullptr ? memory : allocate(rounded(size));
}

void give_back(void* memory, std::size_t size, Use use) {
  if (use == Use::weights || size < kSmallest) {
    release(memory, size);
  } else {
    kept().keep(memory, rounded(size));
  }
}

}  // namespace relakit::translate
