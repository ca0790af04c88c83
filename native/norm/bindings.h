#pragma once

#include <nanobind/nanobind.h>

namespace relakit::norm {

class NormEntry;

// Add the functions for the norm to the module. They return None until they are connected.
void bind(nanobind::module_& m);
void connect(const NormEntry* entry);

}  // namespace relakit::norm
