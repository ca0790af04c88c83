#pragma once

#include <cstdint>

namespace relakit {

// Run task(0) ... task(count - 1), each once, on up to `threads` threads. Any thread may run any
// task, so tasks must not share results. An exception in a task ends the work and is rethrown to
// the caller. A task must not ask for threads itself.
//
// A plain function and its data, not std::function: code compiled for one instruction set must not
// contain templates of the standard library, which the linker would share with all other code.
void run_parallel(std::int64_t count, int threads, void (*task)(void* data, std::int64_t index),
                  void* data);

}  // namespace relakit
