#pragma once

#include <nanobind/nanobind.h>

namespace relakit::simplex {

class SimplexEntry;

// Add the functions for sparsemax and 1.5-entmax to the module. They return None until they are
// connected.
void bind(nanobind::module_& m);
void connect(const SimplexEntry* entry);

}  // namespace relakit::simplex
