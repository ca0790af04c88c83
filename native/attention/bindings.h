#pragma once

#include <nanobind/nanobind.h>

namespace relakit::attention {

class AttentionEntry;

// Put the functions for attention into the module. They return None until they are connected.
void bind(nanobind::module_& m);
void connect(const AttentionEntry* entry);

}  // namespace relakit::attention
