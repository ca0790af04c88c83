#pragma once

#include <cstddef>
#include <cstdint>

namespace relakit {

// Scratch memory of the calling thread, kept from call to call: memory fresh from the system costs
// more than the work on a short sequence. To be given back in the reverse order of taking.
// Aligned to 64 bytes, with whatever the last user left in it. Null for 0 bytes.
// Throws std::bad_alloc.
void* take_scratch(std::size_t bytes);
void give_back_scratch(void* memory, std::size_t bytes);

}  // namespace relakit
