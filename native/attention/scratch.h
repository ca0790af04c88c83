#pragma once

#include <cstddef>
#include <cstdint>

namespace relakit::attention {

// Scratch memory of the calling thread, kept from call to call, up to a limit: fresh memory from the
// system costs more than the work on a short sequence. Give it back in reverse order. Aligned to 64 bytes;
// its contents are whatever the last user left there. Null for 0 bytes; throws std::bad_alloc.
void* take_scratch(std::size_t bytes);
void give_back_scratch(void* memory, std::size_t bytes);

}  // namespace relakit::attention
