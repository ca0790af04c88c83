#include "attention/scratch.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace relakit::attention {

namespace {

constexpr std::size_t kAlignment = 64;

#if !defined(RELAKIT_SEPARATE_SCRATCH)

// A thread keeps at most this much. Work that needs more takes far longer than requesting memory
// from the system.
constexpr std::size_t kMostKept = std::size_t{32} << 20;

std::size_t round_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A stack of memory. Whatever does not fit comes from the system. Once the stack is empty again, it
// grows to the size that would have been enough, up to a limit.
class Stack {
 public:
  ~Stack() { std::free(memory_); }

  void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    bytes = round_up(bytes);
    most_needed_ = std::max(most_needed_, needed_ + bytes);
    if (used_ == 0 && std::min(most_needed_, kMostKept) > capacity_) grow();
    void* taken = base_ + used_;
    if (used_ + bytes <= capacity_) {
      used_ += bytes;
    } else {
      taken = take_from_system(bytes);
    }
    needed_ += bytes;  // last, because the allocation may have failed
    return taken;
  }

  void give_back(void* memory, std::size_t bytes) {
    if (bytes == 0) return;
    bytes = round_up(bytes);
    needed_ -= bytes;
    auto* start = static_cast<char*>(memory);
    if (start >= base_ && start < base_ + capacity_) {
      used_ -= bytes;
    } else {
      std::free(blocks_.back());
      blocks_.pop_back();
    }
  }

 private:
  static char* align(void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    return reinterpret_cast<char*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }

  void grow() {
    std::free(memory_);
    const std::size_t size = std::min(most_needed_, kMostKept);
    memory_ = std::malloc(size + kAlignment);
    capacity_ = memory_ == nullptr ? 0 : size;
    base_ = align(memory_);
  }

  void* take_from_system(std::size_t bytes) {
    blocks_.reserve(blocks_.size() + 1);  // may throw, so before there is a block to leak
    void* block = std::malloc(bytes + kAlignment);
    if (block == nullptr) throw std::bad_alloc();
    blocks_.push_back(block);
    return align(block);
  }

  void* memory_ = nullptr;
  char* base_ = nullptr;
  std::size_t capacity_ = 0, used_ = 0, needed_ = 0, most_needed_ = 0;
  std::vector<void*> blocks_;
};

thread_local Stack stack;

#else

// For memory checkers: each buffer is a separate block and starts full of NaN.
class SeparateBlocks {
 public:
  static void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* block = nullptr;
    if (posix_memalign(&block, kAlignment, bytes) != 0) throw std::bad_alloc();
    std::memset(block, 0xFF, bytes);
    return block;
  }
  static void give_back(void* memory, std::size_t) { std::free(memory); }
};
SeparateBlocks stack;

#endif

}  // namespace

void* take_scratch(std::size_t bytes) { return stack.take(bytes); }

void give_back_scratch(void* memory, std::size_t bytes) { stack.give_back(memory, bytes); }

}  // namespace relakit::attention
