#pragma once

#include <nanobind/nanobind.h>

namespace relakit::attention {

struct Entry;

// Add the functions for attention to the module. They return None until they are connected.
void bind(nanobind::module_& m);
void connect(const Entry* entry);

}  // namespace relakit::attention
