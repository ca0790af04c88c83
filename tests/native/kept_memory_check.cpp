// Blocks that searches give back and take again. Nothing is written to them, so they cost no memory.

#include <new>

#include "check.h"
#include "short_memory.h"
#include "translate/kept_memory.h"

namespace relakit::check {

namespace {

using translate::give_back;
using translate::take_memory;
using translate::Use;

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

// Whether a block of this size is kept when it is given back. The next of the same size, taken before,
// is another one.
bool is_kept(std::size_t megabytes, Use use) {
  const std::size_t size = megabytes * kMegabyte;
  void* memory = take_memory(size, use);
  void* other = take_memory(size, use);
  give_back(memory, size, use);
  void* again = take_memory(size, use);
  const bool same = again == memory && again != other;
  give_back(other, size, use);
  give_back(again, size, use);
  return same;
}

// Whether all blocks can be given back when there is no memory to take note of them.
bool are_given_back_in_need() {
  const std::size_t size = kMegabyte;
  std::vector<void*> blocks(100);
  for (void*& block : blocks) block = take_memory(size, Use::search);
  make_memory_short(true);
  bool all = true;
  try {
    for (void* block : blocks) give_back(block, size, Use::search);
  } catch (const std::bad_alloc&) {
    all = false;
  }
  make_memory_short(false);
  return all;
}

}  // namespace

void check_kept_memory() {
  begin("all sets", "kept memory");
#if !defined(RELAKIT_SEPARATE_SCRATCH)
  expect(is_kept(3, Use::search), "a block is kept");
  expect(is_kept(100, Use::search) && is_kept(80, Use::search), "large ones too");
  // 2 * (3 + 100 + 80) MiB are more than the most that is kept, so the oldest are gone.
  expect(is_kept(50, Use::search), "another size is kept when there are many");
  expect(is_kept(3, Use::search), "and so is the first");
  expect(are_given_back_in_need(), "blocks are given back when memory is short");
#endif
  const std::size_t size = 10 * kMegabyte;
  void* weights = take_memory(size, Use::weights);
  give_back(weights, size, Use::weights);
  expect(reinterpret_cast<std::uintptr_t>(weights) % 64 == 0, "weights begin with a line");
}

}  // namespace relakit::check
