#pragma once

namespace relakit::check {

// Whether `new` fails in this thread. Not the one with an alignment.
void make_memory_short(bool is_short);

}  // namespace relakit::check
