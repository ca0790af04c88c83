#pragma once

#include <cstddef>
#include <cstdint>

namespace relakit::translate {

inline std::size_t as_index(std::int64_t i) { return static_cast<std::size_t>(i); }

// Make room for at least `size` entries; existing entries stay.
template <class Vector>
void make_room(Vector& buffer, std::int64_t size) {
  if (buffer.size() < as_index(size)) buffer.resize(as_index(size));
}

}  // namespace relakit::translate
