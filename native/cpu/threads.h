#pragma once

#include <cstdint>

namespace relakit {

// Run task(0) ... task(count - 1), each once, on up to `threads` threads. Which thread runs a task
// depends on chance, so tasks must not share results.
//
// A plain function and its data, not std::function: code that is compiled for one instruction set must
// not leave behind templates of the standard library that the linker then shares with all others.
void run_parallel(std::int64_t count, int threads, void (*task)(void* data, std::int64_t index),
                  void* data);

}  // namespace relakit
