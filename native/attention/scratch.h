#pragma once

#include <cstddef>
#include <cstdint>

namespace relakit::attention {

// Scratch memory of the calling thread. Up to a limit, it is kept from call to call, because fresh
// memory from the system costs more than the work on a short sequence. Give it back in reverse
// order. It is aligned to 64 bytes and holds whatever its last user left there. Null for 0 bytes;
// throws std::bad_alloc.
void* take_scratch(std::size_t bytes);
void give_back_scratch(void* memory, std::size_t bytes);

}  // namespace relakit::attention
